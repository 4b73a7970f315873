-- gen/ops/add.lua -- y = x + other, element by element.

local launch = require "gen.launch"
local op = require "gen.op"

return op.define "add" {
  inputs = { "x", "other" }, -- of one shape
  emit   = { cpu = "cpu/elementwise.c" },
  may_overwrite = { "x", "other" },
  partition = "rows",

  shape = function(x, other)
    op.check(op.same_shape(x, other),
      "both must have one shape, got %s and %s", op.shape_text(x), op.shape_text(other))
    return x
  end,

  bytes = function(x, other, y) return x.bytes + other.bytes + y.bytes end,

  kernel = function(node)
    local d = node.dim_name(node.inputs.x.dims[2])
    return {
      template = "cpu/elementwise.c",
      name = "add_" .. d:lower(),
      params = { d = d, f = "add", other = true },
      args = { "y", "x", "other", "rows" },
    }
  end,

  cuda = function(node) return launch.elementwise(node, "add", { other = "other" }) end,

  reference = function(y, x, other)
    for i = 1, #x do y[i] = x[i] + other[i] end
  end,
}
