-- tests/gen/test_qwen3_5.lua -- models/qwen3_5.lua holds the tensors of the releases, name by name
-- and dim by dim, and carries from token to token what they say.

local spec = require "tests.support.spec"
local describe = require "tests.gen.describe"
local graph = require "gen.graph"
local hf = require "gen.formats.spellings.hf"
local kv = require "gen.kv"
local layout = require "gen.layout"

local function model_of(variant) return describe.file("qwen3_5", variant) end

-- What transformers leaves out: the drafting layer. Facts of the releases' own file lists, less
-- the decoder layer's own tensors, which are those of layer 3.
local drafting = {
  "mtp.fc.weight", "mtp.norm.weight", "mtp.pre_fc_norm_embedding.weight",
  "mtp.pre_fc_norm_hidden.weight",
}

-- { name = "12288x5120" } of all tensors in tests/golden/qwen3_5.
local function golden(variant)
  local shapes = {}
  for line in io.lines(("tests/golden/qwen3_5/%s.shapes"):format(variant)) do
    local name, shape, layers = line:match "^([^# ]+) (%S+) ?(.*)$"
    if name and layers == "" then shapes[name] = shape end
    for range in (layers or ""):gmatch "%S+" do
      local first, last = range:match "^(%d+)%-?(%d*)$"
      for layer = first, last ~= "" and last or first do shapes[name:format(layer)] = shape end
    end
  end
  return shapes
end

local function described(model)
  local shapes = {}
  local function add(weight, layer, group)
    local dims = {}
    for i, x in ipairs(weight.shape) do dims[i] = x:value() end
    shapes[hf.name(model, weight, layer, group)] = table.concat(dims, "x")
  end
  for _, weight in ipairs(model.weights) do add(weight) end
  for _, group in ipairs(model.groups) do
    for layer, block in ipairs(group.layers) do
      for _, weight in ipairs(block.weights) do add(weight, layer - 1, group) end
    end
  end
  return shapes
end

for _, variant in ipairs { "27b", "35b-a3b" } do
  spec(variant .. " has the release's tensors by name and shape, none is missing", function()
    local want, found = golden(variant), described(model_of(variant))
    -- A patch is one row here: a convolution whose stride is its kernel is a product.
    local patches = "model.visual.patch_embed.proj.weight"
    want[patches] = want[patches]:gsub("x3x2x16x16$", "x1536")
    for name, shape in pairs(found) do
      local own = name:match "^mtp%.layers%.0%.(.*)"
      if own then
        spec.equal(shape, want["model.language_model.layers.3." .. own], name)
        found[name] = nil
      end
    end
    for _, name in ipairs(drafting) do
      spec.equal(found[name] ~= nil, true, name)
      found[name] = nil
    end

    spec.equal(found, want)
  end)
end

spec("element totals are the published ones", function()
  -- The safetensors' metadata of Qwen3.6-27B and Qwen3.6-35B-A3B.
  spec.equal(layout.elements(model_of "27b"), 27781427952)
  spec.equal(layout.elements(model_of "35b-a3b"), 35951822704)
end)

spec("parts have their published totals: drafting, vision, text", function()
  local function sum(variant, pattern)
    local n = 0
    for name, shape in pairs(described(model_of(variant))) do
      local elements = 1
      for dim in shape:gmatch "%d+" do elements = elements * tonumber(dim) end
      if name:find(pattern) then n = n + elements end
    end
    return math.tointeger(n)
  end
  spec.equal(sum("27b", "^mtp%."), 424699392)
  spec.equal(sum("27b", "^model%.visual%."), 460730096)
  spec.equal(sum("35b-a3b", "^model%.language_model%.") + sum("35b-a3b", "^lm_head"), 34660610688)
end)

-- Sums over the rows of one program: bytes of one token's pages, of one sequence's states.
local function carried(model, dtype, program)
  local per_token, per_sequence = 0, 0
  for _, row in ipairs(kv.layouts(model)[dtype].rows) do
    if model.programs[row.program].name == program then
      per_token = per_token + row.bytes_per_token
      per_sequence = per_sequence + row.bytes_per_sequence
    end
  end
  return per_token, per_sequence
end

spec("a token's keys and values and a sequence's memory take the published bytes", function()
  local model = model_of "27b"
  for dtype, bytes in pairs { bf16 = 65536, fp8 = 32768, nvfp4 = 18432 } do
    local per_token, per_sequence = carried(model, dtype, "step")
    spec.equal(per_token, bytes, dtype)
    spec.equal(per_sequence, 153944064)
    per_token, per_sequence = carried(model, dtype, "draft")
    spec.equal(per_token, bytes // 16, dtype .. ", drafting")
    spec.equal(per_sequence, 0)
  end
  local per_token, per_sequence = carried(model_of "35b-a3b", "nvfp4", "step")
  spec.equal(per_token, 5760)
  spec.equal(per_sequence, 30 * 2146304)
end)

spec("a layer's states: three rows before the convolution, a matrix for each value head", function()
  local of_layer = {}
  for _, row in ipairs(kv.layouts(model_of "27b").bf16.rows) do
    if row.layer == 0 and row.program == 1 then of_layer[row.name] = row.bytes_per_sequence end
  end
  spec.equal(of_layer, { conv = 61440, memory = 3145728 })
end)

spec("the encoder makes a soft token of the decoder's width from four patches", function()
  for variant, width in pairs { ["27b"] = 5120, ["35b-a3b"] = 2048 } do
    local encode
    for _, program in ipairs(model_of(variant).programs) do
      if program.name == "encode_image" then encode = program end
    end
    local shape = encode.outputs[1].tensor.shape
    spec.equal({ shape[1].extent, shape[1]:multiple(), shape[2]:value() }, { "soft", 1, width })
    for _, input in ipairs(encode.inputs) do
      if input.name == "pixels" then
        spec.equal({ input.tensor.shape[1]:multiple(), input.tensor.dtype }, { 4, "u8" })
      end
    end
  end
end)

spec("one head for both: what drafts reads step's embedding and head", function()
  local uses = {}
  for _, program in ipairs(model_of("27b").programs) do
    for _, row in ipairs(graph.flat(program)) do
      for _, input in ipairs(row.op.inputs) do
        local role = input.tensor.weight and not row.section and input.tensor.role
        if role == "embed" or role == "head" then
          uses[#uses + 1] = program.name .. " " .. role
        end
      end
    end
  end
  table.sort(uses)
  spec.equal(uses, { "draft embed", "draft head", "step embed", "step head" })
end)
