-- gen/ops/standardize.lua -- y = (x - bias) * scale, both vectors of the checkpoint's.

local launch = require "gen.launch"
local op = require "gen.op"

return op.define "standardize" {
  inputs = { "x", "bias", "scale" }, -- x (rows, d), bias and scale (d)
  around = { scale = 1 },
  partition = "rows",

  shape = function(x, bias, scale)
    local d = x[#x]
    op.check(op.same_shape(bias, { d }) and op.same_shape(scale, { d }),
      "bias and scale must be (%s), got %s and %s", d, op.shape_text(bias), op.shape_text(scale))
    return x
  end,

  bytes = function(x, bias, scale, y) return x.bytes + bias.bytes + scale.bytes + y.bytes end,

  kernel = function(node)
    local d = node.dim_name(node.inputs.x.dims[2])
    return {
      template = "cpu/standardize.c",
      name = "standardize_" .. d:lower(),
      params = { d = d },
      args = { "y", "x", "bias", "scale", "rows" },
    }
  end,

  cuda = function(node)
    return launch.elementwise(node, "standardize", { vectors = { "bias", "scale" } })
  end,

  reference = function(y, x, bias, scale)
    for i = 1, #x do y[i] = (x[i] - bias[i]) * scale[i] end
  end,
}
