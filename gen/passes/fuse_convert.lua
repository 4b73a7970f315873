-- gen/passes/fuse_convert.lua -- A change of format goes into the operation that makes the row,
-- where nothing else reads the floats. Gains: a row of floats that is neither written nor read.

local graph = require "gen.graph"
local op = require "gen.op"
local face = require("gen.node").face

return function(program, context)
  local uses = graph.uses(program)
  local function can_write(maker, list, format)
    local kv_dtype = context.family.kv_dtypes[1]
    return op.can_write(maker.def, face(maker, list, context, kv_dtype), format)
  end
  for _, list in ipairs(graph.lists(program)) do
    for i = #list.ops, 1, -1 do
      local node = list.ops[i]
      if node.def and node.def.name == "convert" then
        local x = graph.input(node, "x")
        local maker = x.op
        local plain = maker and maker.def and not maker.into and not maker.views
          and not maker.def.in_place
        if plain and uses[x] == 1 and can_write(maker, list, node.out) then
          maker.out, maker.result.dtype = node.out, node.out
          graph.replace(program, node.result, maker.result)
          table.remove(list.ops, i)
        end
      end
    end
  end
  return program
end
