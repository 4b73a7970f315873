-- tests/gen/test_gemma4.lua -- Gemma 4's descriptions: every weight as transformers names and
-- shapes it, as many elements as published, and what a wrong wiring would hide.

local spec = require "tests.support.spec"
local describe = require "tests.gen.describe"
local graph = require "gen.graph"
local layout = require "gen.layout"

-- The safetensors metadata of each release, which leaves numbers (shape ()) out.
local published = {
  { "gemma4", "e2b", 5123178051 }, { "gemma4", "e4b", 7996156490 },
  { "gemma4", "26b-a4b", 25805936206 }, { "gemma4", "31b", 31273088876 },
  { "gemma4_unified", "12b", 11959730224 },
}

local models = {}
local function model_of(row)
  models[row[2]] = models[row[2]] or describe.file(row[1], row[2])
  return models[row[2]]
end

-- { name = shape } of a golden file, and { name = true } of what transformers doesn't load.
local function golden(variant)
  local shapes, ignored = {}, {}
  for line in io.lines("tests/golden/gemma4/" .. variant .. ".shapes") do
    local name, shape, layers = line:match "^([%w_%%.]+) ([%dx-]+) ?([%d -]*)$"
    if not name then
      name, layers = line:match "^ignored ([%w_%%.]+) ([%d -]*)$"
      name = name and "model.language_model." .. name
    end
    local target = shape and shapes or ignored
    for range in (layers or ""):gmatch "%S+" do
      local first, last = range:match "^(%d+)%-?(%d*)$"
      for layer = tonumber(first), tonumber(last) or tonumber(first) do
        target[name:format(layer)] = shape or true
      end
    end
    if shape and layers == "" then target[name] = shape end
  end
  return shapes, ignored
end

-- The same of a model: its weights, and those that it says nobody reads.
local function described(model)
  local shapes, unused = {}, {}
  local function put(name, weight)
    local dims = {}
    for i, x in ipairs(weight.shape) do dims[i] = ("%d"):format(x:value()) end
    local shape = #dims > 0 and table.concat(dims, "x") or "-"
    if weight.unused then unused[name] = shape else shapes[name] = shape end
  end
  for _, weight in ipairs(model.weights) do put(weight.hf, weight) end
  for _, group in ipairs(model.groups) do
    for i, block in ipairs(group.layers) do
      for _, weight in ipairs(block.weights) do
        put(group.prefix:format(i - 1) .. weight.hf, weight)
      end
    end
  end
  return shapes, unused
end

local function program_of(model, name)
  for _, program in ipairs(model.programs) do if program.name == name then return program end end
end

-- Operations of a program by their op's name, each block's once: { op, section }.
local function ops_of(program, name)
  local rows = {}
  for _, row in ipairs(graph.flat(program)) do
    if row.op.def.name == name then rows[#rows + 1] = row end
  end
  return rows
end

spec("element totals are the published ones", function()
  for _, row in ipairs(published) do
    spec.equal(layout.elements(model_of(row)), row[3], row[2])
  end
end)

spec("names and shapes are transformers'", function()
  for _, row in ipairs(published) do
    spec.equal(described(model_of(row)), (golden(row[2])), row[2])
  end
end)

spec("what no program reads is what transformers doesn't load", function()
  for _, row in ipairs(published) do
    local _, unused = described(model_of(row))
    local _, ignored = golden(row[2])
    for name in pairs(unused) do
      local module = name:gsub("%.weight$", "")
      if not ignored[module] then error(row[2] .. ": transformers loads " .. name) end
      ignored[module] = nil
    end
    for module in pairs(ignored) do
      if not module:find "v_norm$" then error(row[2] .. ": nothing said of " .. module) end
    end
  end
end)

spec("embeddings are scaled by sqrt(d_model) in bf16", function()
  local expected = { e2b = 39.25, e4b = 50.5, ["26b-a4b"] = 53, ["31b"] = 73.5, ["12b"] = 62 }
  for _, row in ipairs(published) do
    local scale = ops_of(program_of(model_of(row), "step"), "scale")[1]
    spec.equal(scale.op.attrs.factor, expected[row[2]] + 0.0, row[2])
  end
end)

spec("sharing layers read the cache of the last layer of their kind that has one", function()
  for variant, expected in pairs { e2b = { 13, 14, 20 }, e4b = { 22, 23, 18 } } do
    local step, n = program_of(model_of { "gemma4", variant }, "step"), 0
    for _, row in ipairs(ops_of(step, "attention")) do
      local cache = graph.input(row.op, "kv")
      for layer, owner in pairs(cache.owner_of or {}) do
        spec.equal(owner, expected[cache.window > 0 and 1 or 2], variant .. " layer " .. layer)
        n = n + 1
      end
    end
    spec.equal(n, expected[3], variant)
  end
end)

spec("global layers turn 64 of 256 pairs, by frequencies of the whole head", function()
  local step = program_of(model_of(published[1]), "step")
  for _, row in ipairs(ops_of(step, "rope")) do
    local freq = row.op.attrs.inv_freq
    if #freq == 256 then
      spec.near(freq[64], 1e6 ^ (-126 / 512), 1e-8)
      spec.equal(freq[65], 0.0)
    else
      spec.equal(#freq, 128)
      spec.near(freq[128], 10000 ^ (-254 / 256), 1e-10)
    end
  end
end)

spec("tokens of an image see each other in layers with a window, of the larger models", function()
  for _, row in ipairs(published) do
    local small = row[2] == "e2b" or row[2] == "e4b"
    for _, attention in ipairs(ops_of(program_of(model_of(row), "step"), "attention")) do
      local window = graph.input(attention.op, "kv").window > 0
      spec.equal(graph.input(attention.op, "spans") ~= nil, window and not small, row[2])
    end
  end
end)

spec("a soft token is nine patches of 768 bytes, or one square of 6,912", function()
  for _, row in ipairs(published) do
    local bytes = 0
    for _, input in ipairs(program_of(model_of(row), "encode_image").inputs) do
      local x = input.tensor
      if input.name == "pixels" then
        spec.equal(x.dtype, "u8")
        bytes = x.shape[1]:multiple() * x.shape[2]:value()
      end
    end
    spec.equal(bytes, 6912, row[2])
  end
end)
