-- gen/formats/recipes.lua -- Named mixtures of formats: (role, layer, shape) -> format.
-- They follow what makes such files: transformers' save_pretrained for f32, f16 and bf16,
-- llama.cpp's quantizer for the others (src/llama-quant.cpp).
--
-- Vectors are f32 in all: GGUF files hold them so, and the loader widens those of Hugging Face,
-- which is exact. One binary reads both.
--
-- llama.cpp gives the output matrix, tied to the embedding or not, more bits than the rest: Q6_K,
-- or Q8_0 where rows aren't a multiple of 256. Until there is a Q6_K, it is Q8_0 here for all. A
-- matrix whose rows aren't a multiple of 32 stays in f16.

local recipes = {}

local function plain(format)
  return function(weight) return #weight.shape == 1 and "f32" or format end
end

local function quantized(format)
  return function(weight)
    if #weight.shape == 1 then return "f32" end
    if weight.shape[2]:value() % require("gen.formats." .. format).group ~= 0 then
      return "f16"
    end
    if weight.is_output then return "q8_0" end
    return format
  end
end

recipes.list = { "f32", "f16", "bf16", "q4_0", "q4_1", "q8_0" }
recipes.rules = {
  f32 = plain "f32", f16 = plain "f16", bf16 = plain "bf16",
  q4_0 = quantized "q4_0", q4_1 = quantized "q4_1", q8_0 = quantized "q8_0",
}

-- A matrix outside the layers that a linear reads makes the logits.
local function mark_outputs(model)
  for _, program in ipairs(model.programs) do
    for _, op in ipairs(program.ops) do
      for _, input in ipairs(op.inputs) do
        if op.def and op.def.name == "linear" and input.tensor.weight then
          input.tensor.is_output = true
        end
      end
    end
  end
end

-- Calls f(weight, layer, set) for every weight, in each of its layers; layer is nil outside.
local function each_weight(model, f)
  for _, weight in ipairs(model.weights) do
    f(weight, nil, function(format) weight.format = format end)
  end
  for _, group in ipairs(model.groups) do
    for i, block in ipairs(group.layers) do
      for _, weight in ipairs(block.weights) do
        weight.formats = weight.formats or {}
        f(weight, i - 1, function(format) weight.formats[i - 1] = format end, group)
      end
    end
  end
end

function recipes.apply(model, name)
  local rule = recipes.rules[name]
  if not rule then
    return nil, ("there is no recipe '%s'; there are: auto, %s"):format(
      name, table.concat(recipes.list, ", "))
  end
  mark_outputs(model)
  each_weight(model, function(weight, layer, set) set(rule(weight, layer)) end)
  model.recipe = name
  return true
end

-- `formats_of(weight, layer, group)` gives what a checkpoint holds, or nil and why. The recipe's
-- name is that of the known one that it agrees with, else "auto".
function recipes.from_checkpoint(model, format_of)
  mark_outputs(model)
  local missing = {}
  each_weight(model, function(weight, layer, set, group)
    local format, why = format_of(weight, layer, group)
    if not format then missing[#missing + 1] = why end
    set(format)
  end)
  if #missing > 0 then
    local shown = table.concat(missing, "\n  ", 1, math.min(#missing, 20))
    return nil, ("the checkpoint doesn't fit the description:\n  %s%s"):format(shown,
      #missing > 20 and ("\n  and %d more"):format(#missing - 20) or "")
  end
  model.recipe = "auto"
  for _, name in ipairs(recipes.list) do
    local same = true
    each_weight(model, function(weight, layer)
      local found = layer and weight.formats[layer] or weight.format
      same = same and found == recipes.rules[name](weight, layer)
    end)
    if same then
      model.recipe = name
      break
    end
  end
  return true
end

return recipes
