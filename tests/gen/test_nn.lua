-- tests/gen/test_nn.lua -- A mistake in a description is told at its line, in its words; what
-- is right becomes the graph that it says.

local spec = require "tests.support.spec"
local describe = require "tests.gen.describe"
local graph = require "gen.graph"

local function wrong(text, line, part)
  local message = spec.raises(part, describe.text, text)
  if not message:find("models/x.lua:" .. line .. ": ", 1, true) then
    error("expected line " .. line .. " in\n" .. message, 2)
  end
end

local function block(text) return describe.model(text .. "\n  return x") end

-- Line 20 of describe.model is the first of a block.
spec("a shape that doesn't fit is told in sizes' names", function()
  wrong(block "  local y = nn.rms_norm(x, w.w_up, { eps = 1 })", 20, "rms_norm: weight must be (D_MODEL), got (D_FF, D_MODEL)")
  wrong(block "  local y = nn.linear(x, w.w_down)", 20, "linear: weight must be (outputs, D_MODEL), got (D_MODEL, D_FF)")
  wrong(block "  local y = x + nn.linear(x, w.w_up)", 20, "add: both must have one shape, got (tokens, D_MODEL) and (tokens, D_FF)")
end)

spec("two weights can't be one tensor of the checkpoint", function()
  local text = describe.model(""):gsub("\"u%.weight", "\"d.weight")
  spec.raises("w_up and w_down are both", describe.text, text)
end)

spec("a weight that no machine holds is refused before its bytes wrap", function()
  wrong("local d = nn.dims { d_model = 1000000000 }\nlocal w = nn.weight('w', { d.d_model, d.d_model })", 2,
    "weight: w has 1e+18 elements, at most 4.4e+12 are planned")
end)

spec("a tail call has its own line", function()
  wrong(describe.model "  x = x\n  return nn.linear(x, w.w_down)", 21, "linear: weight must be")
  wrong(describe.model "  local function f()\n    return nn.linear(x, w.w_down)\n  end\n  return f()", 21, "linear: weight must be")
end)

spec("a line within an expression of several lines", function()
  wrong(describe.model "  return x\n    + nn.linear(x,\n        w.w_down)", 21, "linear: weight must be")
end)

spec("an attribute that is missing, unknown or of another type", function()
  wrong(block "  local y = nn.rms_norm(x, w.attn_norm)", 20, "rms_norm: give { eps = ... }")
  wrong(block "  local y = nn.rms_norm(x, w.attn_norm, { eps = 1, epsilon = 2 })", 20, 'unknown attribute "epsilon"; it takes: eps')
  wrong(block "  local y = nn.rms_norm(x, w.attn_norm, { eps = 'a' })", 20, "eps must be a number, got string")
end)

spec("an operation that there isn't", function()
  wrong(block "  local y = nn.nothing(x)", 20, 'nn has no "nothing"')
  wrong(block "  local y = nn['../op'](x)", 20, "nn has no")
end)

spec("a role that there isn't", function()
  wrong(block "  local y = nn.linear(x, w.nothing)", 20, 'block has no "nothing"')
  wrong(block "  local y = batch.nothing", 20, 'batch has no "nothing"')
end)

spec("something that is no tensor", function()
  wrong(block "  local y = nn.linear(1, w.wq)", 20, "linear: x must be a tensor, got number")
  wrong(block "  local y = nn.linear(x)", 20, "linear: weight must be a tensor, got nothing")
  wrong(block "  local y = nn.linear(x, w.wq, x, x)", 20, "linear takes x, weight and a table of attributes")
end)

spec("heads that can't be told from a width", function()
  wrong(block "  local y = nn.rope(x, batch.positions, { theta = 1 })", 20, "can't tell the heads in D_MODEL")
  describe.text(describe.model [[
  local a = nn.attention(nn.rope(nn.linear(h, w.wq), batch.positions, { theta = 1, d_head = 8 }), kv:append(nn.linear(h, w.wk), nn.linear(h, w.wv)))
  return x + nn.linear(a, w.wo)]])
end)

spec("a block must give back what it got", function()
  wrong(describe.model "  return nn.linear(x, w.w_up)", 27, "must return (tokens, D_MODEL), got (tokens, D_FF)")
end)

spec("a cache that two appends disagree about", function()
  wrong(block "  kv:append(nn.linear(h, w.wk), nn.linear(h, w.wv))\n  kv:append(nn.linear(h, w.wq), nn.linear(h, w.wq))", 21, "append: n_heads is 5, the cache has 1")
end)

spec("operations outside of a program", function()
  wrong("local x = nn.weight('x', { 3 })\nlocal y = nn.silu(x)", 2, "belong into a program")
end)

spec("a size of two extents in a declared input", function()
  wrong(describe.model(nil, "  return nn.input('m', { nn.tokens * nn.outputs }, 'f32')"), 29, "two extents: tokens and outputs")
end)

spec("a result of two extents", function()
  wrong(describe.model(nil, "  local q = nn.input('m', { nn.tokens, nn.outputs }, 'f32')\n  return nn.silu(q)"), 30, "two extents: tokens and outputs")
end)

spec("a weight that nothing reads", function()
  local model = describe.text(describe.model "  return x + nn.linear(nn.linear(h, w.wq), w.wo)")
  spec.raises("models/x.lua:9: weight 'wk' is never read", function()
    local ok, e = pcall(describe.planned, model, { quant = "f32" })
    if not ok then error(e.message or e, 0) end
  end)
end)

-- ---- What a program gives back, and reads ------------------------------------------------------

local body = "  local x = w.layers(nn.embedding(batch.token_ids, w.embed), batch)\n"

spec("a model has a step", function()
  wrong("local m = nn.model { e = nn.weight('x', { 1 }) }\nreturn m", 2, "model has no step")
  wrong("return nn.dims { n_a = 1 }", 1, "return the nn.model")
  wrong("return {}", 1, "return the nn.model")
end)

spec("a step gives the logits of the rows that are wanted", function()
  wrong(describe.model(nil, body .. "  return nn.linear(x, w.embed)"), 30, "step: logits must be (outputs, N_VOCAB), got (tokens, N_VOCAB): take the rows that are wanted")
  wrong(describe.model(nil, body .. "  return nn.rows(x, batch.output_rows)"), 30, "step: logits must be (outputs, N_VOCAB), got (outputs, D_MODEL)")
  wrong(describe.model(nil, body .. "  return { hidden = nn.rows(x, batch.output_rows) }"), 30, "step: return logits, (outputs, N_VOCAB)")
  wrong(describe.model(nil, body), 31, "step: return a tensor or a table of tensors, got nothing")
  local model = describe.text(describe.model(nil, body .. "  local h = nn.rows(x, batch.output_rows)\n  return { hidden = h, logits = nn.linear(h, w.embed) }"))
  spec.equal(#model.programs[1].outputs, 2)
end)

spec("outputs have names, each once", function()
  wrong(describe.model(nil, body .. "  local l = nn.linear(nn.rows(x, batch.output_rows), w.embed)\n  return { l, logits = l }"), 31, "step: an output can't be called \"1\"")
  wrong(describe.model(nil, body .. "  local l = nn.linear(nn.rows(x, batch.output_rows), w.embed)\n  nn.tap('logits', l)\n  return l"), 32, "step: there are two outputs logits")
end)

spec("a step reads only what an engine fills, and what is declared is read", function()
  local rest = "\n  return nn.linear(nn.rows(x, batch.output_rows), w.embed)"
  wrong(describe.model(nil, body .. "  x = x + nn.input('extra', { nn.tokens, 40 })" .. rest), 30, "input: nobody fills extra")
  wrong(describe.model(nil, body .. "  local e = nn.input('extra', { nn.tokens, 40 })" .. rest), 30, "input: no operation of step reads extra")
  wrong(describe.model(nil, body .. "  local a, b = nn.input('extra', { nn.tokens, 40 }), nn.input('extra', { nn.tokens, 4 })" .. rest), 30, "input: extra is f32 in (tokens, 40) already")
end)

-- ---- Things in their places -----------------------------------------------------------------

local function kept(block, step)
  return (describe.model("  kept = kept or {" .. block .. "}\n  return x", body .. "  " .. step .. "\n  return nn.linear(nn.rows(x, batch.output_rows), w.embed)")
    :gsub("d_head = 8,\n}", "d_head = 8 }\nlocal kept"))
end

spec("what one function keeps has no meaning in another one", function()
  wrong(kept("x", "x = x + kept[1]"), 29, "add: other is a tensor of another block or program")
  wrong(kept("h", "x = x + kept[1]"), 29, "add: other is a tensor of another block or program")
  wrong(kept("w", "x = nn.linear(x, kept[1].wq)"), 29, "linear: weight is a weight that isn't in nn.model")
  wrong(kept("kv:append(nn.linear(h, w.wk), nn.linear(h, w.wv))", "x = nn.attention(x, kept[1])"), 29, "attention: kv is another block's cache")
end)

spec("a weight, a cache and a value belong to one block, a group to one model", function()
  local head = "local w = nn.weight('n', { 8 })\n"
  wrong(head .. "local a = nn.block { norm = w }\nlocal b = nn.block { norm = w }", 3, "norm is another weight's tensor already")
  wrong(head .. "local a = nn.block { norm = w }\nlocal b = nn.model { norm = w }", 3, "norm is a weight of a block")
  wrong("local c = nn.kv()\nlocal a = nn.block { c = c }\nlocal b = nn.block { c = c }", 3, "c belongs to another block already")
  wrong("local c = nn.each { 1 }\nlocal a = nn.block { c = c }\nlocal b = nn.block { c = c }", 3, "c belongs to another block already")
  wrong("local a = nn.block { c = nn.kv(), e = nn.kv() }", 1, "it has two caches, c and e")
  wrong("local g = nn.layers('%d', { { 1, nn.block { } } })\nlocal m = nn.model { c = g, e = g }", 2, "must be a weight or nn.layers, once")
  wrong("local m = nn.model { }\nlocal n = nn.model { }", 2, "there is one already")
end)

spec("rows have columns, and their number is known", function()
  wrong(describe.model(nil, "  return nn.silu(nn.input('m', { nn.tokens }))"), 29, "silu: x must have rows and columns, got (tokens)")
  wrong(describe.model(nil, "  return nn.silu(nn.input('m', { nn.tokens, nn.max_context }))"), 29, "silu: its columns must be known when we generate, got MAX_CONTEXT")
  wrong(describe.model(nil, "  return w.layers(batch.token_ids, batch)"), 29, "layers: x must be a tensor of rows")
  wrong(describe.model(nil, "  return w.layers(w.embed, batch)"), 29, "layers: x must be a tensor of rows, got a weight")
end)

spec("what is handed to a group of layers beside x comes to the block as it is", function()
  describe.text((describe.model(nil, (body:gsub("batch%)\n", "batch, { 1 }, 'two', print)\n"):gsub("print", "function() return 3 end")) .. "  return nn.linear(nn.rows(x, batch.output_rows), w.embed)")
    :gsub("%(w, x, batch, kv%)", "(w, x, batch, one, two, three, kv)"):gsub("local h = ", "assert(one[1] == 1 and two == 'two' and three() == 3) local h = ")))
end)

-- ---- What becomes of it ----------------------------------------------------------------------

spec("a block is traced once, however many layers there are", function()
  for _, n in ipairs { 1, 2, 27 } do
    local model = describe.text((describe.model():gsub("n_layers = 2", "n_layers = " .. n)))
    local count = 0
    for _, row in ipairs(graph.flat(model.programs[1])) do count = count + (row.section and 1 or 0) end
    spec.equal(count, 12)
  end
end)

spec("1, 2 and 27 layers have the same arena", function()
  local texts = {}
  for i, n in ipairs { 1, 2, 27 } do
    local model = describe.text((describe.model():gsub("n_layers = 2", "n_layers = " .. n)))
    local families = describe.planned(model, { quant = "f32" })
    local parts = {}
    for _, row in ipairs(families[1].programs[1].costs) do parts[#parts + 1] = tostring(row.bytes) end
    texts[i] = table.concat(parts, "; ")
  end
  spec.equal(texts[2], texts[1])
  spec.equal(texts[3], texts[1])
end)

spec("tied weights are one", function()
  local model = describe.text(describe.model())
  spec.equal(#model.weights, 1)
end)

local two_kinds = [[
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
]]

spec("kinds of layers, ranges of them and taps", function()
  local model = describe.text(two_kinds)
  local program = model.programs[1]
  spec.equal(#program.outputs, 2)
  local items = {}
  for _, op in ipairs(program.ops) do if op.layers then items[#items + 1] = op end end
  spec.equal(#items, 2)
  spec.equal(#items[1].sections, 2)
  spec.equal(table.concat(items[2].sections[1].layers, " "), "3 4")
  spec.equal(table.concat(items[2].sections[2].layers, " "), "5")
  local families = describe.planned(model, { quant = "f32" })
  local c = require("gen.emit.c").family(model, families[3], {})
  spec.contains(c, "layers_kind[layer] == 1")
end)

spec("a tap belongs into a program, once, and is something that it computes", function()
  wrong(describe.model "  return nn.tap('deep', x)", 20, "tap: give a name and a tensor, in a program")
  wrong(describe.model(nil, "  local x = nn.embedding(batch.token_ids, w.embed)\n  nn.tap('h', x)\n  nn.tap('h', x)"), 31, "there is an output h already")
  wrong(describe.model(nil, "  return { e = nn.input('m', { nn.tokens, 4 }) }"), 29, "output e isn't computed")
  wrong(describe.model(nil, "  nn.tap('s', nn.input('m', { nn.tokens, 4 }))"), 29, "tap: \"s\" can't be a name: lower-case")
end)

spec("an operation takes inputs of its own kind", function()
  wrong(describe.model(nil, "  return nn.silu(nn.input('m', { nn.soft, 4 }, 'u8'))"), 29, "silu: x must be f32, got u8")
  wrong(describe.model(nil, "  local x = nn.embedding(batch.token_ids, w.embed)\n  return nn.rows(x, nn.input('m', { nn.outputs }))"), 30, "rows: index must be i32, got f32")
  wrong(block "  local y = nn.attention(x, x)", 20, "attention: kv must be a cache, got a tensor")
  wrong(block "  local y = nn.attention(x, kv)", 20, "attention: nothing was appended to the cache yet")
  wrong(block "  local y = x * nn.each { 1, 2 }", 20, "mul: other must be a tensor, got a value of each layer's")
end)

spec("an encoder says how long its items are, and a frame of video where that is no picture", function()
  local text = [[
local d = nn.dims { n_vocab = 64 }
local model = nn.model { norm = nn.weight("norm", { 128 }), e = nn.weight("e", { d.n_vocab, 32 }) }
function model.step(w, batch)
  return nn.linear(nn.rows(nn.embedding(batch.token_ids, w.e), batch.output_rows), w.e)
end
model.encode_image = nn.encoder({ smallest = 4, largest = 64FRAME }, function(w)
  return nn.rms_norm(nn.input("pixels", { nn.soft, 128 }), w.norm, { eps = 1e-6 })
end)
return model
]]
  local function frame(said) return describe.text((text:gsub("FRAME", said))).programs[2].frame end
  spec.equal(frame "", 64)
  spec.equal(frame ", frame = 7", 7)
  wrong(text:gsub("FRAME", ", frame = 3"), 6, "encoder: frame = 3 is none of 4 ... 64")
  wrong(text:gsub("FRAME", ", frame = 65"), 6, "encoder: frame = 65 is none of 4 ... 64")
end)

spec("a model has a context of one token at least", function()
  spec.raises("n_ctx = 0: a model has one at least", function()
    describe.planned(describe.text [[
local d = nn.dims { n_vocab = 64, n_ctx = 0 }
local model = nn.model { e = nn.weight("e", { d.n_vocab, 32 }) }
function model.step(w, batch)
  return nn.linear(nn.rows(nn.embedding(batch.token_ids, w.e), batch.output_rows), w.e)
end
return model
]], { quant = "f32" })
  end)
end)

spec("rows are a multiple of an extent", function()
  wrong(describe.model(nil, "  return nn.silu(nn.input('m', { nn.soft + 1, 4 }))"), 29, "silu: its rows must be an extent or a multiple of one, got soft + 1")
  local model = describe.text [[
local d = nn.dims { n_vocab = 64 }
local model = nn.model { norm = nn.weight("norm", { 128 }), e = nn.weight("e", { d.n_vocab, 32 }) }
function model.step(w, batch)
  return nn.linear(nn.rows(nn.embedding(batch.token_ids, w.e), batch.output_rows), w.e)
end
model.encode = nn.encoder({ smallest = 4, largest = 64 }, function(w)
  return nn.rms_norm(nn.input("pixels", { nn.soft * 9, 128 }), w.norm, { eps = 1e-6 })
end)
return model
]]
  local families = describe.planned(model, { quant = "f32" })
  spec.equal(families[1].programs[2].costs[2].slope, 9 * 128 * 4)
  local c = require("gen.emit.c").family(model, families[1], {})
  spec.contains(c, "9 * b.n_soft")
end)

local cached = [[
local d = nn.dims { d_model = 32, n_vocab = 64, n_ctx = 128, n_heads = 2, d_head = 16 }
d.d_q = d.n_heads * d.d_head
local function kind()
  return nn.block { wq = nn.weight("q", { d.d_q, d.d_model }), wk = nn.weight("k", { d.d_q, d.d_model }), wv = nn.weight("v", { d.d_q, d.d_model }) }
end
local function attend(w, x, kv)
  return x + nn.attention(nn.linear(x, w.wq), kv:append(nn.linear(x, w.wk), nn.linear(x, w.wv)))
end
local first, second = kind(), kind()
function first.forward(w, x, batch, kv) return attend(w, x, kv) end
function second.forward(w, x, batch, kv)
  SECOND
end
local model = nn.model { e = nn.weight("e", { d.n_vocab, d.d_model }), layers = nn.layers("l.%d.", { { 2, first } }), more = nn.layers("m.%d.", { { 1, first }, { 1, second } }) }
function model.step(w, batch)
  local x = w.layers(nn.embedding(batch.token_ids, w.e), batch)
  STEP
  return nn.linear(nn.rows(w.more(x, batch), batch.output_rows), w.e)
end
return model
]]

local function cached_text(second, step)
  return (cached:gsub("SECOND", second or "return attend(w, x, kv)"):gsub("STEP", step or ""))
end

spec("two groups of layers have caches of their own", function()
  local model = describe.text((cached_text():gsub("{ 1, first }, ", "")))
  describe.planned(model, { quant = "f32" })
  local places = {}
  for i, row in ipairs(model.kv.f32.rows) do
    places[i] = ("%s %d at %d"):format(row.group.role, row.layer, row.page_offset)
  end
  spec.equal(table.concat(places, ", "), "layers 0 at 0, layers 1 at 16384, more 0 at 32768")
end)

spec("a model with a cache says how long its context is", function()
  local text = cached_text():gsub("{ 1, first }, ", ""):gsub("n_ctx = 128, ", "")
  spec.raises("x.lua: a model with a cache needs n_ctx in nn.dims", describe.planned, describe.text(text), { quant = "f32" })
end)

spec("a block has one cache, and a step appends to it once", function()
  wrong(cached_text("return attend(w, attend(w, x, kv), nn.kv_of(0))"), 7, "append: this cache belongs to another layer")
  wrong(cached_text("return attend(w, x, kv) + nn.attention(nn.linear(x, w.wq), nn.kv_of(0))"), 18, "block 'block' uses two caches")
  wrong(cached_text("return attend(w, attend(w, x, kv), kv)"), 18, "more: layer 1 has appended to its cache already")
  wrong(cached_text(nil, "x = w.layers(x, batch)"), 17, "layers: layer 0 has appended to its cache already")
end)

local scanned = [[
local d = nn.dims { d_model = 32, n_vocab = 64, n_ctx = 128 }
local block = nn.block { taps = nn.weight("conv", { d.d_model, 1, 4 }), past = nn.state { { 3, d.d_model }, dtype = "bf16", per = "sequence" } }
function block.forward(w, x) return nn.causal_conv(x, w.taps, STATE) end
local model = nn.model { e = nn.weight("e", { d.n_vocab, d.d_model }), layers = nn.layers("l.%d.", { { 3, block } }) }
function model.step(w, batch)
  return nn.linear(nn.rows(w.layers(nn.embedding(batch.token_ids, w.e), batch), batch.output_rows), w.e)
end
return model
]]

spec("what a scan carries on is a row of each layer's, bytes a sequence", function()
  local model = describe.text((scanned:gsub("STATE", "w.past")))
  describe.planned(model, { quant = "bf16" })
  local layout = model.kv.bf16
  spec.equal(#layout.rows, 3)
  spec.equal(layout.rows[3].name .. " " .. layout.rows[3].state, "past fixed")
  spec.equal(layout.bytes_per_sequence, 3 * 3 * 32 * 2)
  spec.equal(layout.bytes_per_token, 0)
  wrong((scanned:gsub("STATE", "x")), 3, "causal_conv: state must be a state, got a tensor")
end)

local shared = [[
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
]]

spec("layers may read another one's cache", function()
  local model = describe.text(shared)
  local families = describe.planned(model, { quant = "f32" })
  local layout = model.kv.bf16
  spec.equal(#layout.rows, 2)
  spec.equal(layout.rows[1].n_readers, 2)
  spec.equal(layout.rows[2].n_readers, 2)
  spec.equal(layout.page_bytes, layout.bytes_per_token * 64)
  spec.contains(require("gen.emit.c").family(model, families[3], {}), "layers_pages_bf16")
end)

spec("a layer can't read the cache of a later one", function()
  wrong(shared:gsub("layer %- 2", "layer + 1"), 9, "layer 2 can't read the cache of layer 3")
end)
