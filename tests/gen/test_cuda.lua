-- tests/gen/test_cuda.lua -- What is emitted for GPUs: a host program of launches, kernels' texts by
-- themselves, one text for all families that lower alike.

local spec = require "tests.support.spec"
local describe = require "tests.gen.describe"
local generate = require "gen.generate"
local size = require "gen.size"

local function files(name, variant, options)
  local model = describe.file(name, variant)
  local families = describe.planned(model, options)
  local all = {}
  for _, file in ipairs(generate.files(model, families, options)) do all[file.name] = file.text end
  return all, model, families
end

-- Of the kernels' table: each one's text, as NVRTC gets it.
local function units(source)
  local list = {}
  for name, body in source:gmatch "%.name = \"([a-z0-9_]+)\", [^\n]*%.text =\n(.-) },\n" do
    local lines = {}
    for line in body:gmatch "\"([^\n]*)\"" do
      lines[#lines + 1] = (line:gsub("\\(.)", function(c) return c == "n" and "\n" or c end))
    end
    list[name] = table.concat(lines)
  end
  return list
end

spec("all GPUs run the text of the first, where formats are those that it has kernels for", function()
  local all, model, families = files("llama_tiny", "groups", { quant = "q4_0", target = "cuda" })
  spec.equal(#families, #generate.gpus)
  for _, family in ipairs(families) do spec.equal(family.code, "sm80") end
  spec.contains(all[model.name .. ".c"], '.name = "sm120"')
  spec.contains(all[model.name .. ".c"], ".cuda = &sm80_code")
  for _, name in ipairs { "sm80.c", "sm80.cu", "sm80_kernels.c" } do
    if not all[name] then error(name .. " is missing") end
  end
  if all["sm90.c"] then error "sm90 has a text of its own" end
end)

spec("formats without kernels are planned only, on GPUs as on CPUs", function()
  local all, model, families = files("llama_tiny", "small", { quant = "nvfp4", target = "any", tables_only = true })
  for _, family in ipairs(families) do
    spec.contains(table.concat(family.missing.step, " "), "format nvfp4")
    spec.equal(#family.runs.step, 0)
  end
  spec.contains(all[model.name .. ".c"], ".run = NULL")
  if all[model.name .. ".c"]:find "enqueue" then error "something is enqueued" end
end)

spec("keys and values in bf16 alone have kernels: the others' entries are empty", function()
  local all, model = files("llama_tiny", "groups", { quant = "bf16", target = "cuda" })
  spec.contains(all[model.name .. ".c"],
    "static burin_enqueue *const sm80_step_enqueue[] = { sm80_step_bf16, NULL, NULL };")
end)

spec("a kernel's text is whole by itself behind the prelude: sizes, what it calls, and it", function()
  local all = files("llama_tiny", "groups", { quant = "q4_0", target = "cuda" })
  local list = units(all["sm80_kernels.c"])
  local n = 0
  for name, text in pairs(list) do
    n = n + 1
    local _, defined = text:gsub("extern \"C\" __global__[^{]-[ \n]" .. name .. "%(", "")
    spec.equal(defined, 1)
    for line in text:gmatch "[^\n]+" do -- each is also in the file for people
      if not all["sm80.cu"]:find(line, 1, true) then error(name .. ": " .. line) end
    end
  end
  local _, rows = all["sm80_kernels.c"]:gsub("%.name = ", "")
  spec.equal(n, rows)
  spec.contains(list.rms_norm_d_model, "D_MODEL = 64")
end)

spec("the host program launches what the description says, line by line", function()
  local all = files("llama_tiny", "groups", { quant = "q4_0", target = "cuda" })
  spec.contains(all["sm80.c"], "    /* 34  local h = rms_norm(x, w.attn_norm, { eps = 1e-5 }) */\n"
    .. "    rms_norm_d_model(t, s->h, s->x, w->attn_norm, b->n_tokens);\n")
  spec.contains(all["sm80.c"], "for (int layer = 0; layer < N_LAYERS; layer++) {")
  if all["sm80.c"]:find "burin_team" then error "a team has no place on a GPU" end
end)

spec("every launch is of a kernel in the table, in its order", function()
  for _, variant in ipairs { "e2b", "26b-a4b" } do
    local all = files("gemma4_tiny", variant, { target = "cuda" })
    local names, launched = {}, {}
    for name in all["sm80_kernels.c"]:gmatch "%.name = \"([a-z0-9_]+)\"" do names[#names + 1] = name end
    local numbers = all["sm80.c"]:match "enum {\n(.-)\n};"
    local i = 0
    for number in numbers:gmatch "KERNEL_([A-Z0-9_]+)," do
      i = i + 1
      spec.equal(number:lower(), names[i])
    end
    spec.equal(i, #names)
    for number in all["sm80.c"]:gmatch "burin_launch%(%s*t, KERNEL_([A-Z0-9_]+)," do
      launched[number:lower()] = true
    end
    for number in all["sm80.c"]:gmatch "%.unpack = KERNEL_([A-Z0-9_]+)," do launched[number:lower()] = true end
    for _, name in ipairs(names) do
      if not launched[name] then error(name .. " is never launched") end
    end
  end
end)

spec("under --fast-gemm a plain product may be cuBLASLt's, out of scratch that is planned then only", function()
  local all, _, families = files("llama_tiny", "groups", { quant = "q4_0", target = "cuda" })
  local body = all["sm80.c"]:match "static void linear_add_q4_0_d_ff%(.-\n}\n"
  spec.contains(body, ".unpack = KERNEL_UNPACK_Q4_0_D_FF, .unpack_blocks = { 2, (n_out + 31) / 32, 1 },")
  spec.contains(body, ".k = D_FF, .n_rows = n_rows, .y_dtype = BURIN_BF16, .adds = true,")
  spec.contains(body, "    if (burin_fast_product(t, &product))\n        return;\n    if (n_rows <= 32)\n")
  spec.contains(all["sm80_kernels.c"], '"unpack_q4_0_d_ff", .threads = 128, .shared_bytes = 0, .fast_gemm = true,')

  local program = families[1].programs[1]
  local function fixed(i, fast_gemm)
    return size.at(program.costs[i].bytes, { tokens = 0, outputs = 0, fast_gemm = fast_gemm })
  end
  local w_down = 160 * 64 * 2 -- the largest, and what cuBLASLt works in
  spec.equal(fixed(2, 1), w_down + (32 << 20) + 256)
  if fixed(2, 0) >= 1 << 20 then error "room for cuBLASLt without the option" end
  spec.equal(fixed(3, 1), fixed(3, 0)) -- few rows have logits
end)

spec("matrices that cuBLASLt can't read in whole words, and experts, keep our kernels", function()
  local all = files("llama_tiny", "small", { quant = "bf16", target = "cuda" })
  spec.contains(all["sm80.c"], "burin_fast_product")
  local experts = files("gemma4_tiny", "26b-a4b", { target = "cuda" })["sm80.c"]
  for body in experts:gmatch "static void [a-z_]*experts[a-z0-9_]*%(.-\n}\n" do
    if body:find "burin_fast_product" then error(body) end
  end
end)

spec("a graph has a node for each launch of a layer, and of each layer", function()
  local _, _, families = files("llama_tiny", "groups", { quant = "q4_0", target = "cuda" })
  -- Of a layer: norm, qkv, two ropes, append, attention and its merging, wo, norm, glu, down. Around
  -- them: embedding, rows, norm, head, and two for what is drawn from.
  spec.equal(families[1].programs[1].graph.kernel_nodes, 3 * 11 + 6)
end)

spec("an architecture of --aot is one that NVIDIA names so", function()
  local all = files("llama_tiny", "groups", { quant = "q4_0", target = "cuda", aot = "sm_90a,sm_120a" })
  spec.contains(all["sources.cmake"], "set(BURIN_MODEL_AOT sm_90a sm_120a)")
  spec.contains(all["gen.json"], '"aot": ["sm_90a", "sm_120a"]')
  local output = spec.shell "gen/gen --model llama_tiny --aot sm90 --out /nowhere 2>&1"
  spec.contains(output, "--aot sm90: an architecture is sm_80, sm_90a")
  output = spec.shell "gen/gen --model llama_tiny --aot sm_90a,sm_75 --out /nowhere 2>&1"
  spec.contains(output, "--aot sm_75: no family is for it, they begin with sm_80")
end)

spec("an architecture of --aot that is unknown here is told, and left to NVRTC", function()
  local function told(archs)
    return (spec.shell("gen/gen show llama_tiny --aot " .. archs .. " 2>&1 >/dev/null"))
  end
  spec.equal(told "sm_80,sm_86,sm_90,sm_90a,sm_103f,sm_121a", "")
  for _, arch in ipairs { "sm_999", "sm_80a", "sm_90f" } do
    spec.contains(told(arch), "--aot " .. arch .. ": it's unknown here")
  end
end)
