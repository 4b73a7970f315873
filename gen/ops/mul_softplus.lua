-- gen/ops/mul_softplus.lua -- In each head, y = x * factor * ln(1 + e^weight), one weight for all
-- heads: a learnt scale that can't turn a sign.

local launch = require "gen.launch"
local op = require "gen.op"

return op.define "mul_softplus" {
  inputs = { "x", "weight" }, -- x (rows, n_heads * d_head), weight (d_head)
  attrs  = { factor = "number?" },
  in_place = "x",
  partition = "rows",

  shape = function(x, weight)
    op.check(#x == 2 and #weight == 1 and x[2]:value() % weight[1]:value() == 0,
      "weight must be (d_head), x (rows, n_heads * d_head), got %s and %s", op.shape_text(weight),
      op.shape_text(x))
    return x
  end,

  bytes = function(x, weight, y) return x.bytes + weight.bytes + y.bytes end,

  cuda = function(node)
    return launch.elementwise(node, "mul_softplus", {
      vectors = { "weight" }, period = node.dim_name(node.inputs.weight.dims[1], "d_head"),
      factor = node.attrs.factor,
    })
  end,

  -- One head of one row.
  reference = function(y, x, weight, attrs)
    for i = 1, #x do
      y[i] = x[i] * (attrs.factor or 1) * math.log(1 + math.exp(weight[i]))
    end
  end,
}
