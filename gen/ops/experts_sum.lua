-- gen/ops/experts_sum.lua -- A token's experts together: the sum of its choices' rows, each times
-- its weight, in the order of the slots.

local launch = require "gen.launch"
local op = require "gen.op"

return op.define "experts_sum" {
  inputs = { "x", "weights" }, -- x (tokens * k, d), weights (tokens, k)
  gathers = { "x" },
  partition = "rows",

  shape = function(x, weights)
    op.check(#x == 2 and #weights == 2,
      "x must be (tokens * k, d), weights (tokens, k), got %s, %s", op.shape_text(x),
      op.shape_text(weights))
    op.check(x[1] == weights[1] * weights[2], "x must have %s rows, got %s",
      weights[1] * weights[2], x[1])
    return { weights[1], x[2] }
  end,

  bytes = function(x, weights, y) return x.bytes + weights.bytes + y.bytes end,

  kernel = function(node)
    local d = node.dim_name(node.inputs.x.dims[2])
    return {
      template = "cpu/experts_sum.c",
      name = "experts_sum_" .. d:lower(),
      params = { d = d, k = node.dim_name(node.inputs.weights.dims[2], "n_active_experts") },
      args = { "y", "x", "weights", "rows" },
    }
  end,

  cuda = function(node)
    local n = node.inputs.x.dims[2]
    return launch.columns(node, n, {
      template = "cuda/experts_sum.cu", name = "experts_sum", width = node.dim_name(n),
      rows = { "x", "weights" },
      params = {
        d = node.dim_name(n), k = node.dim_name(node.inputs.weights.dims[2], "n_active_experts"),
      },
      args = { "y", "x", "weights", "rows" },
    })
  end,

  -- One token: the rows of its slots.
  reference = function(y, rows, weights)
    for i = 1, #rows[1] do
      local sum = 0
      for slot = 1, #weights do sum = sum + rows[slot][i] * weights[slot] end
      y[i] = sum
    end
  end,
}
