-- gen/ops/scale.lua -- y = x * factor, a number known when we generate.

local launch = require "gen.launch"
local op = require "gen.op"

return op.define "scale" {
  inputs = { "x" },
  attrs  = { factor = "number" },
  emit   = { cpu = "cpu/scale.c" },
  in_place = "x",
  partition = "rows",

  shape = function(x) return x end,

  bytes = function(x, y) return x.bytes + y.bytes end,

  kernel = function(node)
    local d = node.dim_name(node.inputs.x.dims[2])
    local hex = string.unpack("<I4", string.pack("<f", node.attrs.factor))
    return {
      template = "cpu/scale.c",
      name = ("scale_%s_%08x"):format(d:lower(), hex),
      params = { d = d, factor = node.attrs.factor },
      args = { "y", "x", "rows" },
    }
  end,

  cuda = function(node)
    local hex = string.unpack("<I4", string.pack("<f", node.attrs.factor))
    return launch.elementwise(node, "scale", {
      name = ("scale_%08x"):format(hex), factor = node.attrs.factor,
    })
  end,

  reference = function(y, x, attrs)
    for i = 1, #x do y[i] = x[i] * attrs.factor end
  end,
}
