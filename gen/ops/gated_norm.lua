-- gen/ops/gated_norm.lua -- y = x / rms(x) * weight * silu(z), head by head: what Gated DeltaNet
-- does with its result.   Yang, Kautz and Hatamizadeh 2024, arXiv:2412.06464

local op = require "gen.op"

return op.define "gated_norm" {
  inputs = { "x", "weight", "z" }, -- x and z (rows, n_heads * d_head), weight (d_head)
  attrs  = { eps = "number" },     -- added to the mean square, under the root
  cuda = { kernels = 1 },
  around = { weight = 1 },
  in_place = "x",
  strided = { "z" },
  partition = "rows",

  shape = function(x, weight, z)
    op.check(#weight == 1, "weight must be (d_head), got %s", op.shape_text(weight))
    op.check(op.same_shape(x, z), "x and z must have one shape, got %s and %s",
      op.shape_text(x), op.shape_text(z))
    op.check(x[#x]:value() % weight[1]:value() == 0, "%s isn't a multiple of %s", x[#x], weight[1])
    return x
  end,

  hyperparameters = function(_, _, _, attrs) return { eps = attrs.eps } end,

  bytes = function(x, weight, z, y) return x.bytes + weight.bytes + z.bytes + y.bytes end,

  -- One head of one row.
  reference = function(y, x, weight, z, attrs)
    local sum_sq = 0
    for i = 1, #x do sum_sq = sum_sq + x[i] * x[i] end
    local scale = 1 / math.sqrt(sum_sq / #x + attrs.eps)
    for i = 1, #x do y[i] = x[i] * scale * weight[i] * z[i] / (1 + math.exp(-z[i])) end
  end,
}
