-- gen/ops/experts_down.lua -- y = h w' for each choice, by the chosen expert's matrix: one
-- grouped product.   Gale et al. 2022, arXiv:2211.15841

local cuda_tiles = require "gen.cuda_tiles"
local op = require "gen.op"
local size = require "gen.size"
local tiles = require "gen.tiles"

return op.define "experts_down" {
  -- h (choices, k), weight (n_experts, n, k); rows (choices), begin (n_experts + 1).
  inputs = { "h", "weight", "rows", "begin" },
  activation = "h",
  takes = { rows = "i32", begin = "i32" },
  gathers = { "h" },
  stacks = 1, -- of each expert one matrix
  partition = "tiles",

  shape = function(h, weight, rows, begin, attrs)
    op.check(#weight == 3 and weight[3] == h[#h], "weight must be (n_experts, n, %s), got %s",
      h[#h], op.shape_text(weight))
    op.check(op.same_shape(rows, { h[1] }), "rows must be (%s), got %s", h[1], op.shape_text(rows))
    op.check(op.same_shape(begin, { weight[1] + 1 }), "begin must be (%s + 1), got %s", weight[1],
      op.shape_text(begin))
    attrs.n_choices = rows[1]:multiple() -- for each of its extent
    return { h[1], weight[2] }
  end,

  share = function(_, weight, rows) return rows[1]:multiple() / weight[1]:value() end,

  bytes = function(h, weight, rows, begin, y)
    local rest = h.bytes + rows.bytes + begin.bytes + y.bytes
    return { min = rest, max = rest + weight.bytes }
  end,

  scratch = function(node) return tiles.made_scratch(node, node.inputs.h.act, 1) end,

  kernel = function(node, family) return tiles.experts(node, family, { x = "h", slots = 1 }) end,

  cuda = function(node)
    local weight = node.inputs.weight
    local n_tokens = "n_" .. node.inputs.h.dims[1]
    return cuda_tiles.experts(node, {
      op = "experts_down", x = "h", name = "experts_down", text = "h w'", slots = 1,
      choices = node.attrs.n_choices, n_experts = size.of(weight.dims[1]):value(),
      n_tokens = n_tokens,
      args = {
        "y", "h", "weight", "rows", "begin",
        "n_out=" .. node.dim_name(size.of(weight.dims[2]):value()), n_tokens,
      },
    })
  end,

  -- One choice: its h and its expert's matrix.
  reference = function(y, h, weight)
    for out = 1, #weight do
      local sum = 0
      for i = 1, #h do sum = sum + h[i] * weight[out][i] end
      y[out] = sum
    end
  end,
}
