-- gen/passes/fuse_add.lua -- x + linear(a, w) becomes a linear that adds to x where it lies.
-- Gains: d_model floats a token that are not written and read once more, and a barrier.

local graph = require "gen.graph"

return function(program)
  local uses = graph.uses(program)

  local function match(list, base, product, at)
    local node = product.op
    if not (node and node.def and node.def.name == "linear" and uses[product] == 1) then
      return
    end
    if node.views or node.into or base == product then return end
    if graph.input(node, "x") == base then return end -- it would read what it writes
    -- x's old value must not be read after the sum is made.
    for i = at + 1, #list.ops do
      for _, input in ipairs(list.ops[i].inputs) do
        if input.tensor == base then return end
      end
      if list.ops[i].layers and list.ops[i].x == base then return end
    end
    if list.result == base or base.weight or base.input then return end
    for _, output in ipairs(program.outputs) do if output.tensor == base then return end end
    return node
  end

  for _, list in ipairs(graph.lists(program)) do
    local i = 1
    while i <= #list.ops do
      local node = list.ops[i]
      if node.def and node.def.name == "add" then
        local a, b = graph.input(node, "x"), graph.input(node, "other")
        local base, linear = a, match(list, a, b, i)
        if not linear then base, linear = b, match(list, b, a, i) end
        if linear then
          for j, other in ipairs(list.ops) do
            if other == linear then
              table.remove(list.ops, j)
              break
            end
          end
          i = i - 1
          linear.attrs.epilogue = "add"
          graph.set_input(linear, "into", base)
          linear.into, linear.lines = "into", { table.unpack(linear.lines) }
          linear.line = node.line
          linear.result = node.result
          linear.result.op = linear
          list.ops[i] = linear
        end
      end
      i = i + 1
    end
  end
  return program
end
