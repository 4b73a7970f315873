-- gen/passes/fuse_glu.lua -- silu(x gate') * (x up') becomes one linear_glu over tiles of gate
-- and up in turn. Gains: one stream of weights, and 2 * d_ff floats a token that are neither
-- written nor read.

local graph = require "gen.graph"
local node_of = require "gen.node"
local op = require "gen.op"

local activations = { silu = true, gelu_tanh = true }

return function(program)
  local def = op.find "linear_glu"
  if not def then return program end
  local uses = graph.uses(program)

  local function linear_behind(tensor)
    local node = tensor.op
    return node and node.def and node.def.name == "linear" and uses[tensor] == 1 and node or nil
  end

  -- gate and up of an activation times something, or nil.
  local function match(list, activated, other)
    local act = activated.op
    if not (act and act.def and activations[act.def.name] and uses[activated] == 1) then
      return
    end
    local gate, up = linear_behind(graph.input(act, "x")), linear_behind(other)
    if not (gate and up) or graph.input(gate, "x") ~= graph.input(up, "x") then return end
    local w_gate, w_up = graph.input(gate, "weight"), graph.input(up, "weight")
    local same_format = node_of.format(w_gate, list) == node_of.format(w_up, list)
    if same_format and w_gate.shape[1] == w_up.shape[1] then return act, gate, up end
  end

  for _, list in ipairs(graph.lists(program)) do
    local i = 1
    while i <= #list.ops do
      local node = list.ops[i]
      if node.def and node.def.name == "mul" then
        local a, b = graph.input(node, "x"), graph.input(node, "other")
        local act, gate, up = match(list, a, b)
        if not act then act, gate, up = match(list, b, a) end
        if act then
          local fused = graph.op(def, {
            { name = "x", tensor = graph.input(gate, "x") },
            { name = def.inputs[2], tensor = graph.input(gate, "weight") },
            { name = def.inputs[3], tensor = graph.input(up, "weight") },
          }, { activation = act.def.name }, node.result.shape, node)
          fused.lines, fused.out, fused.result.dtype = node.lines, node.out, node.result.dtype
          fused.weights = { graph.input(gate, "weight"), graph.input(up, "weight") }
          fused.interleaved = true
          list.ops[i] = fused
          graph.replace(program, node.result, fused.result)
        end
      end
      i = i + 1
    end
  end
  graph.sweep(program)
  return program
end
