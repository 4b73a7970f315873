-- gen/hyperparameters.lua -- What a checkpoint may say about itself besides its tensors, and the
-- traced model knows: { n_layers = 30, n_heads = 9, rope_theta = 1e5, eps = 1e-5, ... }.
--
-- Each op says what it computes with (its `hyperparameters`); what all of them agree on is one
-- of the model. Where layers differ (two thetas) there is none, and nothing is compared. How a
-- container spells them stands in formats/spellings.

local graph = require "gen.graph"

local hyperparameters = {}

-- All values by name; DIFFERS where layers don't agree.
local DIFFERS = {}

local function add(found, name, value)
  if found[name] == nil then
    found[name] = value
  elseif found[name] ~= value then
    found[name] = DIFFERS
  end
end

local function of_op(op, found)
  local args = {}
  for i, name in ipairs(op.def.inputs) do
    local tensor = graph.input(op, name)
    args[i] = tensor and (tensor.state and tensor or tensor.shape) or false
  end
  args[#args + 1] = op.attrs
  for name, value in pairs(op.def.hyperparameters(table.unpack(args))) do add(found, name, value) end
end

-- Of the token program alone: an encoder beside it has its own heads and norms.
local function step_of(model)
  for _, program in ipairs(model.programs) do
    if program.name == "step" then return program end
  end
end

function hyperparameters.of(model)
  local found = {}
  local step = step_of(model)
  for _, row in ipairs(step and graph.flat(step) or {}) do
    if row.op.def.hyperparameters then of_op(row.op, found) end
  end
  for _, op in ipairs(step and step.ops or {}) do
    if op.layers then add(found, "n_layers", #op.layers.layers) end
  end
  for name, value in pairs(found) do
    if value == DIFFERS then found[name] = nil end
  end
  return found
end

return hyperparameters
