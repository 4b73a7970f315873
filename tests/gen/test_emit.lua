-- tests/gen/test_emit.lua -- The emitted text: the same bytes every time, foreign text only as
-- data, and the passes' work as it is read there.

local spec = require "tests.support.spec"
local describe = require "tests.gen.describe"
local generate = require "gen.generate"
local graph = require "gen.graph"
local text = require "gen.emit.text"

local function files(name, variant, options)
  options = options or {}
  local model = describe.file(name, variant)
  local families = describe.planned(model, options)
  local all = {}
  for _, file in ipairs(generate.files(model, families, options)) do all[file.name] = file.text end
  return all, model, families
end

-- The operations of a program, one name each.
local function ops_of(program)
  local names = {}
  for _, row in ipairs(graph.flat(program)) do names[#names + 1] = row.op.def.name end
  return table.concat(names, " ")
end

spec("the same bytes every time", function()
  local a, b = files("llama", "smollm2-135m"), files("llama", "smollm2-135m")
  for name, content in pairs(a) do
    if b[name] ~= content then error(name .. " differs") end
  end
end)

spec("gen takes about a second", function()
  local from = os.clock()
  files("llama", "smollm2-135m")
  if os.clock() - from > 1.5 then error(("%.2f s"):format(os.clock() - from)) end
end)

spec("a linear reads what its format wants, the logits' in two rows; exact reads floats", function()
  local _, _, families = files("llama", "smollm2-135m")
  local function formats(family)
    local list = {}
    for _, row in ipairs(graph.flat(family.programs[1])) do
      if row.op.def.name:find "^linear" then list[#list + 1] = graph.input(row.op, "x").dtype end
    end
    return table.concat(list, " ")
  end
  spec.equal(formats(families[1]), "q8 q8 q8 q8 q8x2")
  spec.equal(formats(families[2]), "f32 f32 f32 f32 f32")
end)

spec("fused: q, k and v are one linear, gate and up one, sums go into x, formats into makers", function()
  local _, _, families = files("llama", "smollm2-135m")
  spec.equal(ops_of(families[1].programs[1]), "rope_angles embedding rms_norm linear rope rope kv_append "
    .. "attention linear rms_norm linear_glu linear rows rms_norm linear")
end)

spec("linears whose outputs aren't a multiple of 32 stay three, without barriers in between", function()
  local all, _, families = files("llama_tiny", "small")
  spec.equal(ops_of(families[1].programs[1]), "rope_angles embedding rms_norm linear linear linear rope rope kv_append "
    .. "attention linear rms_norm linear_glu linear rows rms_norm linear")
  local block = all["avx512.c"]:match "static void decoder_block_bf16%b().-\n({.-\n})"
  spec.equal(select(2, block:gsub("burin_barrier", "")), 8)
end)

spec("a head of 16 can't be a group of 32: the change of format stays", function()
  local _, _, families = files("llama_tiny", "groups")
  spec.contains(ops_of(families[1].programs[1]), "attention convert linear")
end)

spec("bf16 weights read bf16 rows, f16 weights floats", function()
  local function formats(recipe)
    local _, _, families = files("llama", "smollm2-135m", { quant = recipe })
    local found = {}
    for _, row in ipairs(graph.flat(families[1].programs[1])) do
      if row.op.def.name == "linear" then found[#found + 1] = graph.input(row.op, "x").dtype end
    end
    return table.concat(found, " ")
  end
  spec.equal(formats "bf16", "bf16 bf16 bf16 bf16")
  spec.equal(formats "f16", "f32 f32 f32 f32")
end)

spec("layers of different formats are different functions over one description", function()
  local model = describe.file("llama_tiny", "groups")
  local recipes = require "gen.formats.recipes"
  recipes.rules.mixed = {
    { { "layers%.1%.mlp%.down_proj", "q8_0" }, { ".", "q4_1" }, tables = true },
  }
  local families = describe.planned(model, { quant = "mixed" })
  recipes.rules.mixed = nil
  local c = require("gen.emit.c").family(model, families[3], {})
  spec.contains(c, "static void decoder_block_q4_1_bf16(")
  spec.contains(c, "static void decoder_block_q4_1_w_down_q8_0_bf16(")
  spec.contains(c, "/* Layers 0, 2; ")
  spec.contains(c, "layers_kind[layer] == 1")
end)

spec("the description's lines stand above what they became", function()
  local all = files("llama_tiny", "small")
  spec.contains(all["portable.c"], "local h = rms_norm(x, w.attn_norm, { eps = 1e-5 }) */\n    rms_norm_d_model_f32(t, s->h, s->x, w->attn_norm, b->n_tokens);")
end)

spec("probes only where they are asked for", function()
  local without, with = files("llama_tiny", "small"), files("llama_tiny", "small", { probe = true })
  if without["avx512.c"]:find "probe" then error "a trace of probes" end
  spec.contains(with["avx512.c"], "burin_probe(t, b->call, 2);")
end)

spec("the plan's tables are there without code", function()
  local all, model = files("llama_tiny", "small", { tables_only = true })
  if all["avx512.c"] or all[model.name .. ".c"]:find "pack_f32" then error "there is code" end
  spec.contains(all[model.name .. ".c"], ".run = NULL")
end)

spec("no name of a place on this machine, no date", function()
  for _, content in pairs((files("llama", "smollm2-135m"))) do
    for _, word in ipairs { "/home", "/work", "/tmp", os.date "%Y.%m" } do
      if content:find(word) then error("found " .. word) end
    end
  end
end)

spec("any text is one C string", function()
  spec.equal(text.string 'a"b\\c\n%d */ ${x}\0\xff??/ a???/b?', [["a\"b\\c\n%d */ ${x}\000\377\?\?/ a\?\?\?/b?"]])
end)

spec("a call that is too long is broken as clang-format does it", function()
  local args = {}
  for i = 1, 20 do args[i] = "argument" .. i end
  for line in text.call("    ", "some_function", args, ";"):gmatch "[^\n]+" do
    if #line > 92 then error("too long: " .. line) end
  end
end)

-- What people read of llama_tiny: structs and functions of its portable family, without kernels.
-- Line numbers and bytes of scratch, which other files decide, are left out. After a change
-- that is meant: BURIN_UPDATE_GOLDEN=1 lua5.4 tests/support/spec.lua tests/gen/test_emit.lua
spec("llama_tiny's programs are the golden ones", function()
  local path = "tests/golden/emitted/llama_tiny-groups-q4_1.c"
  local all = files("llama_tiny", "groups")
  local programs = all["portable.c"]:match "/%* %-%-%-%- Programs.*$"
    :gsub("([/ ]%*) %d+  ", "%1 line  "):gsub("llama_tiny.lua:%d+", "llama_tiny.lua:line")
    :gsub("_SCRATCH = %d+", "_SCRATCH = bytes"):gsub("%d+ B, this thread", "bytes, this thread")
  if os.getenv "BURIN_UPDATE_GOLDEN" then
    local file = assert(io.open(path, "w"))
    file:write(programs)
    file:close()
  end
  local file = assert(io.open(path))
  local golden = file:read "a"
  file:close()
  if programs ~= golden then
    local folder = spec.folder()
    local out = assert(io.open(folder .. "/now.c", "w"))
    out:write(programs)
    out:close()
    error("it differs:\n" .. spec.shell(("diff %s %s/now.c | head -40"):format(path, folder)))
  end
end)

spec("gen and the runtime agree on the numbers that both state", function()
  local function number(path, name)
    local file = assert(io.open(path))
    local text = file:read "a"
    file:close()
    return math.tointeger(text:match(name .. " = (%d+)"))
  end
  spec.equal(number("runtime/cpu/attention.h", "BURIN_BLOCK"), require("gen.kv").PAGE_TOKENS)
  spec.equal(number("runtime/model.h", "BURIN_TILE_ROWS"), require("gen.tiles").ROWS)
  spec.equal(number("runtime/model.h", "BURIN_MAX_TERMS"), require("gen.size").MAX_TERMS)
  spec.equal(number("runtime/plan/plan.h", "BURIN_MAX_PROGRAMS"), number("gen/nn/programs.lua", "MAX_PROGRAMS"))
end)

-- ---- Descriptions that are not llama -----------------------------------------------------------

local odd = {
  kinds_and_taps = [[
local d = nn.dims { d_model = 32, n_vocab = 64, n_ctx = 128, n_heads = 2, d_head = 16 }
d.d_q = d.n_heads * d.d_head
local function kind()
  return nn.block { wq = nn.weight("q", { d.d_q, d.d_model }), wk = nn.weight("k", { d.d_q, d.d_model }), wv = nn.weight("v", { d.d_q, d.d_model }) }
end
local slow, fast = kind(), kind()
slow.forward = function(w, x, batch, kv)
  return x + nn.attention(nn.linear(x, w.wq), kv:append(nn.linear(x, w.wk), nn.linear(x, w.wv)))
end
fast.forward = function(w, x, batch, kv)
  return x + nn.silu(nn.attention(nn.linear(x, w.wq), kv:append(nn.linear(x, w.wk), nn.linear(x, w.wv))))
end
local schedule = {}
for i = 1, 6 do schedule[i] = { 1, i % 3 == 0 and fast or slow } end
local model = nn.model { e = nn.weight("e", { d.n_vocab, d.d_model }), layers = nn.layers("l.%d.", schedule) }
function model.step(w, batch)
  local x = nn.embedding(batch.token_ids, w.e)
  x = w.layers:range(0, 2)(x, batch)
  nn.tap("early", nn.rows(x, batch.output_rows))
  x = w.layers:range(3, 5)(x, batch)
  return nn.linear(nn.rows(x, batch.output_rows), w.e)
end
return model
]],
  shared_caches = [[
local d = nn.dims { d_model = 32, n_vocab = 64, n_ctx = 128, n_heads = 2, d_head = 16 }
d.d_q = d.n_heads * d.d_head
local owner = nn.block { wq = nn.weight("q", { d.d_q, d.d_model }), wk = nn.weight("k", { d.d_q, d.d_model }), wv = nn.weight("v", { d.d_q, d.d_model }) }
function owner.forward(w, x, batch, kv)
  return x + nn.attention(nn.linear(x, w.wq), kv:append(nn.linear(x, w.wk), nn.linear(x, w.wv)))
end
local reader = nn.block { wq = nn.weight("q", { d.d_q, d.d_model }) }
function reader.forward(w, x, batch)
  return x + nn.attention(nn.linear(x, w.wq), nn.kv_of(nn.each(function(layer) return layer - 2 end)))
end
local model = nn.model { e = nn.weight("e", { d.n_vocab, d.d_model }), layers = nn.layers("l.%d.", { { 2, owner }, { 2, reader } }) }
function model.step(w, batch)
  return nn.linear(nn.rows(w.layers(nn.embedding(batch.token_ids, w.e), batch), batch.output_rows), w.e)
end
return model
]],
  shared_windows = [[
local d = nn.dims { d_model = 32, n_vocab = 64, n_ctx = 128, n_heads = 2, d_head = 16, n_layers = 5 }
d.d_q = d.n_heads * d.d_head
d.d_told = d.n_layers * d.d_head
local function owner(window)
  local block = nn.block { wq = nn.weight("q", { d.d_q, d.d_model }), wk = nn.weight("k", { d.d_q, d.d_model }), wv = nn.weight("v", { d.d_q, d.d_model }), kv = window and nn.kv { window = window } }
  function block.forward(w, x, batch, told, kv)
    return x + nn.attention(nn.linear(x, w.wq), kv:append(nn.linear(x, w.wk), nn.linear(x, w.wv)))
  end
  return block
end
local reader = nn.block { wq = nn.weight("q", { d.d_q, d.d_model }), w_told = nn.weight("t", { d.d_model, d.d_head }) }
function reader.forward(w, x, batch, told)
  x = x + nn.linear(nn.layer_columns(told, { width = d.d_head }), w.w_told)
  return x + nn.attention(nn.linear(x, w.wq), nn.kv_of(1))
end
local model = nn.model { e = nn.weight("e", { d.n_vocab, d.d_model }), told = nn.weight("told", { d.d_told, d.d_model }), layers = nn.layers("l.%d.", { { 2, owner(20) }, { 1, owner() }, { 2, reader } }) }
function model.step(w, batch)
  local x = nn.embedding(batch.token_ids, w.e)
  local told = nn.linear(x, w.told)
  x = w.layers:range(0, 2)(x, batch, told)
  x = w.layers:range(3, 4)(nn.rows(x, batch.output_rows), batch, nn.rows(told, batch.output_rows))
  return nn.linear(x, w.e)
end
return model
]],
  an_encoder = [[
local d = nn.dims { d_model = 32, d_patch = 12, n_vocab = 64 }
local model = nn.model { e = nn.weight("e", { d.n_vocab, d.d_model }), w_in = nn.weight("in", { d.d_model, d.d_patch }), norm = nn.weight("norm", { d.d_model }) }
model.encode_image = nn.encoder({ smallest = 4, largest = 64 }, function(w)
  local pixels = nn.input("pixels", { nn.soft, d.d_patch }, "f32")
  local h = nn.linear(pixels, w.w_in) * 0.5
  return { soft_tokens = nn.rms_norm(nn.gelu_tanh(h) + h, w.norm, { eps = 1e-6 }) }
end)
function model.step(w, batch)
  return nn.linear(nn.rows(nn.embedding(batch.token_ids, w.e), batch.output_rows), w.e)
end
return model
]],
  two_programs = [[
local d = nn.dims { d_model = 32, n_vocab = 64, n_ctx = 128, n_heads = 2, d_head = 16 }
d.d_q = d.n_heads * d.d_head
local block = nn.block { wq = nn.weight("q", { d.d_q, d.d_model }), wk = nn.weight("k", { d.d_q, d.d_model }), wv = nn.weight("v", { d.d_q, d.d_model }) }
function block.forward(w, x, batch, kv)
  return x + nn.attention(nn.linear(x, w.wq), kv:append(nn.linear(x, w.wk), nn.linear(x, w.wv)))
end
local model = nn.model { e = nn.weight("e", { d.n_vocab, d.d_model }), layers = nn.layers("l.%d.", { { 3, block } }) }
function model.step(w, batch)
  return nn.linear(nn.rows(w.layers(nn.embedding(batch.token_ids, w.e), batch), batch.output_rows), w.e)
end
function model.draft(w, batch)
  return nn.rows(w.layers(nn.embedding(batch.token_ids, w.e) * 2, batch), batch.output_rows)
end
return model
]],
  a_sum_of_rows_and_their_own_product = [[
local d = nn.dims { d_model = 32, n_vocab = 64 }
local block = nn.block { mix = nn.weight("mix", { d.d_model, d.d_model }) }
function block.forward(w, x)
  return x + nn.linear(x, w.mix)
end
local model = nn.model { e = nn.weight("e", { d.n_vocab, d.d_model }), layers = nn.layers("l.%d.", { { 2, block } }) }
function model.step(w, batch)
  return nn.linear(nn.rows(w.layers(nn.embedding(batch.token_ids, w.e), batch), batch.output_rows), w.e)
end
return model
]],
  a_block_that_returns_something_else = describe.model [[
  local a = nn.attention(nn.linear(h, w.wq), kv:append(nn.linear(h, w.wk), nn.linear(h, w.wv)))
  local int = nn.linear(a, w.wo)
  return nn.silu(nn.linear(nn.silu(nn.linear(int, w.w_up)), w.w_down))]],
  comments = (describe.model():gsub("local h = [^\n]*", "%0 -- */ /* ??/ \\ \xc3\xa9")),
}

local avx512 = "-mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mavx512bf16 -mfma -mf16c"

odd.names_that_are_near_to_others = describe.model([[
  local int = nn.linear(h, w.w0)
  local body_scratch = nn.rms_norm(x, w.isnan, { eps = 1 })
  local a = nn.attention(int, kv:append(nn.linear(h, w.w1), nn.linear(h, w.n_tokens)))
  x = x + nn.linear(a, w.w_o) + body_scratch
  return x + nn.linear(nn.silu(nn.linear(h, w.w_up)), w.w_down)]]):gsub("attn_norm = nn", "isnan = nn.weight('i', { d.d_model }), attn_norm = nn")
  :gsub("wq = nn", "w0 = nn"):gsub("wk = nn", "w1 = nn"):gsub("wv = nn", "n_tokens = nn"):gsub("wo = nn", "w_o = nn")
odd.a_block_called_like_a_kernel = describe.model():gsub("local block =", "local rms_norm_d_model_q8 ="):gsub("block%.forward", "rms_norm_d_model_q8.forward"):gsub("n_layers, block", "n_layers, rms_norm_d_model_q8")
odd.a_block_called_like_a_function_of_c = odd.a_sum_of_rows_and_their_own_product:gsub("block%f[ .}]", "expf"):gsub("nn%.expf", "nn.block")
odd.a_size_called_like_columns_side_by_side = odd.two_programs:gsub("d%.d_q = ([^\n]*)", "%0\nd.d_qkv = d.d_q * 3"):gsub("local a = ", "local qkv = ")
odd.a_size_called_like_other_columns = odd.two_programs:gsub("d%.d_q = ([^\n]*)", "%0\nd.d_qkv = d.d_q * 2")

spec("odd descriptions compile without a warning, and clang-format changes nothing", function()
  local folder = spec.folder()
  local names = {}
  for name in pairs(odd) do names[#names + 1] = name end
  table.sort(names)
  local _, has_format = spec.shell "command -v clang-format"
  for _, name in ipairs(names) do
    local model = describe.text(odd[name])
    local families = describe.planned(model, { quant = "f32" })
    for _, file in ipairs(generate.files(model, families, {})) do
      local path = folder .. "/" .. file.name
      local out = assert(io.open(path, "w"))
      out:write(file.text)
      out:close()
    end
    for _, file in ipairs { model.name .. ".c", "avx512.c", "portable_exact.c" } do
      local output, code = spec.shell(("gcc -std=c11 -fsyntax-only -Wall -Wextra -Wshadow -Werror %s -I. -I%s %s/%s"):format(
        file:find "avx512" and avx512 or "", folder, folder, file))
      if code ~= 0 then error(name .. ": " .. output:sub(1, 2000)) end
      if has_format == 0 then
        output = spec.shell(("clang-format --style=file:.clang-format %s/%s | diff %s/%s - | head -20"):format(folder, file, folder, file))
        if output ~= "" then error(name .. ": " .. file .. "\n" .. output) end
      end
    end
  end
end)

spec("a window is read where it lies in a slot, and written behind all that read it", function()
  local model = describe.text(odd.shared_windows)
  local families = describe.planned(model, { quant = "f32", target = "portable" })
  local files = {}
  for _, file in ipairs(generate.files(model, families, {})) do files[file.name] = file.text end
  local code = files["portable_exact.c"]
  local function match(text, pattern)
    if not text:find(pattern) then error("no " .. pattern, 2) end
  end
  -- Layer 0's ring and the owner's, which both readers read: 20 tokens of 2 heads of 16 + 16 floats.
  match(code, "layers_slots_f32%[%] = {\n +%[0%] = 0,\n +%[1%] = 5120,\n +%[3%] = 5120,\n +%[4%] = 5120,\n}")
  match(code, "layers_pages_f32%[%] = {\n +%[2%] = 0,\n}")
  match(code, "reader_block_f32%(\n? *t, &block, &s, &b, layer, b%.slots %+ layers_slots_f32%[layer%]%)")
  local readers = code:find("reader_block_f32%(\n? *t, &block")
  local append = code:find("kv_append_ring_f32_20x2x16%(\n? *t, b%.slots %+ 5120, b%.state_of")
  assert(readers and append and readers < append, "the ring is written before its readers")
  -- Readers have a query for each row that is wanted, the window's newest keys one for each token.
  match(code, "attention_window_outputs_f32_2x2x16_f32%(.-b%->output_positions,%s+b%->output_sequence_of,%s+b%->output_begin,%s+b%->n_outputs")
  match(files[model.name .. ".c"], "%.slot_bytes = 10240,")
end)

-- ---- The last look ---------------------------------------------------------------------------

local function emitted(change)
  local model = describe.text(describe.model())
  local families = describe.planned(model, { quant = "f32" })
  change(model, families)
  return generate.files(model, families, {})
end

spec("a name that is none can't come to C, whoever made it", function()
  for what, change in pairs {
    ["a size"] = function(model) model.dims[1].name = "d_x }; int evil" end,
    ["d_q: \"48"] = function(model)
      for _, dim in ipairs(model.dims) do if dim.name == "d_q" then dim.text = "48 }; int evil; enum { Z" end end
    end,
    ["a weight"] = function(model) model.weights[1].role = "x; int evil" end,
    ["a block"] = function(model) model.groups[1].layers[1].name = "evil(void){}" end,
    ["a group of layers"] = function(model) model.groups[1].role = "a b" end,
    ["a family"] = function(_, families) families[1].name = "x)\nexecute_process(" end,
    ["a program"] = function(_, families) families[1].programs[1].name = "../x" end,
    ["an input"] = function(_, families) families[1].programs[1].inputs[1].name = "x; evil()" end,
    ["an output"] = function(_, families) families[1].programs[1].outputs[1].name = "x y" end,
    ["a buffer"] = function(_, families) families[1].programs[1].buffers[1].name = "*/" end,
    ["can't be a file's name"] = function(model) model.name = "../x" end,
    ["can't be a template's path"] = function(_, families)
      local op = require("gen.graph").flat(families[1].programs[1])[1].op
      op.def = setmetatable({ kernel = function() return { template = "../../etc/passwd", name = "x", params = {}, args = {} } end }, { __index = op.def })
    end,
    ["can't be a kernel's name"] = function(_, families)
      local op = require("gen.graph").flat(families[1].programs[1])[1].op
      op.def = setmetatable({ kernel = function() return { template = "cpu/rows.c", name = "x y", params = {}, args = {} } end }, { __index = op.def })
    end,
  } do
    local ok, e = pcall(emitted, change)
    if ok then error(what .. ": it was written") end
    spec.contains(type(e) == "table" and e.message or e, what)
  end
end)

spec("two things of one name in C are refused", function()
  local ok, e = pcall(emitted, function(_, families)
    for _, item in ipairs(families[1].programs[1].ops) do
      if item.sections then item.sections[1].name = families[1].name .. "_step" end
    end
  end)
  if ok then error "it was written" end
  spec.contains(type(e) == "table" and e.message or tostring(e), "two things would be called")
end)

spec("a weight says what dims it has in a file, and what its values lie around", function()
  local source = files("gemma4", "26b-a4b", { tables_only = true })["gemma4-26b-a4b-bf16.c"]
  local function row(name)
    local line = source:match('\n([^\n]*"model%.' .. name:gsub("%p", "%%%0") .. '"[^\n]*)')
    local said, stack = line:match "BURIN_FORMAT_%w+, +%d+, +(.-), +(%d+, +%d+, +%b{}) },$"
    return (said:gsub(" +", " ")), (stack:gsub(" +", " "))
  end
  local said, stack = row "language_model.layers.0.experts.gate_up_proj"
  spec.equal(said, "3, { 128, 1408, 2816 }, 0")
  spec.equal(stack, '128, 2, { "model.language_model.layers.0.experts.%d.gate_proj.weight", '
    .. '"model.language_model.layers.0.experts.%d.up_proj.weight" }')
  spec.equal(select(2, row "language_model.norm.weight"), "0, 0, { NULL }")
  spec.equal((row "language_model.layers.0.router.per_expert_scale"), "1, { 128 }, 1")
  spec.equal((row "language_model.layers.0.layer_scalar"), "1, { 1 }, 1")
  spec.equal((row "language_model.norm.weight"), "1, { 2816 }, 1")
  spec.equal((row "vision_tower.patch_embedder.position_embedding_table"), "3, { 2, 10240, 1152 }, 0")
  source = files("gemma4", "e2b", { tables_only = true })["gemma4-e2b-bf16.c"]
  spec.equal((row "vision_tower.encoder.layers.0.mlp.up_proj.output_max"), "0, { 0 }, 64")
  source = files("qwen3_5", "27b", { tables_only = true })["qwen3_5-27b-bf16.c"]
  spec.equal((row "language_model.layers.0.input_layernorm.weight"), "1, { 5120 }, 0") -- stored less 1
end)

spec("what a checkpoint holds and nobody reads has rows, too", function()
  local source = files("gemma4", "e2b", { tables_only = true })["gemma4-e2b-bf16.c"]
  spec.contains(source, ".n_unread = 60,") -- wk, wv and k_norm of 20 layers
  spec.contains(source:match "burin_weight unread%[%] = (%b{})", '"model.language_model.layers.15.self_attn.k_proj.weight"')
end)

spec("weights that only programs without kernels read aren't loaded on a CPU", function()
  local source = files("gemma4", "e2b", { tables_only = true })["gemma4-e2b-bf16.c"]
  local function bytes_of(family)
    return tonumber(source:match('{ %.name = "' .. family .. '", %.exact = false.-%.weights_bytes = (%d+),'))
  end
  local audio = tonumber(source:match '{ %.name = "encode_audio".-%.weights_bytes = (%d+),')
  spec.equal(audio > 500e6, true)
  spec.equal(bytes_of "avx512", bytes_of "sm80" - audio)
end)
