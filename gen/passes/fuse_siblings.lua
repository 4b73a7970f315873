-- gen/passes/fuse_siblings.lua -- Linears of one input with one format become one linear over
-- their tiles side by side, where each has a multiple of 32 outputs; their results are columns
-- of one buffer. Gains: wq | wk | wv is one pass over the input and one barrier, and small
-- matrices (d_kv) give every thread a share.

local graph = require "gen.graph"
local node_of = require "gen.node"
local size = require "gen.size"
local tiles = require "gen.tiles"

return function(program)
  for _, list in ipairs(graph.lists(program)) do
    local groups, by_key = {}, {}
    for _, node in ipairs(list.ops) do
      if node.def and node.def.name == "linear" then
        local x, weight = graph.input(node, "x"), graph.input(node, "weight")
        local rows = weight.shape[1]:value()
        if rows % tiles.ROWS == 0 and graph.takes_columns(program, node.result) then
          local key = ("%d %s %s"):format(x.id, node_of.format(weight, list), node.result.dtype)
          if not by_key[key] then
            by_key[key] = {}
            groups[#groups + 1] = by_key[key]
          end
          table.insert(by_key[key], node)
        end
      end
    end
    for _, group in ipairs(groups) do
      local first = group[1]
      if #group > 1 then
        local width, weights, lines, gone = size.of(0), {}, {}, {}
        local columns = {}
        for i, node in ipairs(group) do
          local weight = graph.input(node, "weight")
          columns[i] = width
          width = i == 1 and weight.shape[1] or width + weight.shape[1]
          weights[i] = weight
          for _, line in ipairs(node.lines) do lines[#lines + 1] = line end
          if i > 1 then gone[node] = true end
        end
        local x = graph.input(first, "x")
        local shape = { x.shape[1], width }
        local fused = graph.op(first.def, {
          { name = "x", tensor = x }, { name = "weight", tensor = weights[1] },
        }, first.attrs, shape, first)
        fused.lines, fused.weights, fused.views = lines, weights, {}
        fused.out, fused.result.dtype = first.out, first.result.dtype
        for i, node in ipairs(group) do
          local view = node.result
          view.view_of, view.column, view.op = fused.result, columns[i], fused
          fused.views[i] = view
        end
        for i = #list.ops, 1, -1 do
          if list.ops[i] == first then list.ops[i] = fused end
          if gone[list.ops[i]] then table.remove(list.ops, i) end
        end
      end
    end
  end
  return program
end
