-- gen/ops/scale_by.lua -- y = x * weight, a number that the checkpoint holds.

local launch = require "gen.launch"
local op = require "gen.op"

return op.define "scale_by" {
  inputs = { "x", "weight" }, -- x (rows, d), weight (1)
  around = { weight = 1 },
  in_place = "x",
  partition = "rows",

  shape = function(x, weight)
    op.check(op.same_shape(weight, { 1 }), "weight must be (1), got %s", op.shape_text(weight))
    return x
  end,

  bytes = function(x, weight, y) return x.bytes + weight.bytes + y.bytes end,

  kernel = function(node)
    local d = node.dim_name(node.inputs.x.dims[2])
    return {
      template = "cpu/scale_by.c",
      name = "scale_by_" .. d:lower(),
      params = { d = d },
      args = { "y", "weight", "rows" },
    }
  end,

  cuda = function(node) return launch.elementwise(node, "scale_by", { vectors = { "weight" } }) end,

  reference = function(y, x, weight)
    for i = 1, #x do y[i] = x[i] * weight[1] end
  end,
}
