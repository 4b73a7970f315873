-- gen/ops/softcap.lua -- y = cap * tanh(x / cap).   Bello et al. 2016, arXiv:1611.09940, §5.1
-- A row may be a whole vocabulary, so threads share out its columns.

local launch = require "gen.launch"
local op = require "gen.op"

return op.define "softcap" {
  inputs = { "x" },
  attrs  = { cap = "number" },
  in_place = "x",

  shape = function(x, attrs)
    op.check(attrs.cap > 0, "cap must be positive")
    return x
  end,

  bytes = function(x, y) return x.bytes + y.bytes end,

  kernel = function(node)
    local d = node.dim_name(node.inputs.x.dims[2])
    local hex = string.unpack("<I4", string.pack("<f", node.attrs.cap))
    return {
      template = "cpu/softcap.c",
      name = ("softcap_%s_%08x"):format(d:lower(), hex),
      params = { d = d, cap = node.attrs.cap },
      args = { "y", "rows" },
    }
  end,

  cuda = function(node)
    local hex = string.unpack("<I4", string.pack("<f", node.attrs.cap))
    return launch.elementwise(node, "softcap", {
      name = ("softcap_%08x"):format(hex), factor = node.attrs.cap,
    })
  end,

  reference = function(y, x, attrs)
    for i = 1, #x do
      local e = math.exp(-2 * math.abs(x[i]) / attrs.cap)
      y[i] = attrs.cap * (1 - e) / (1 + e) * (x[i] < 0 and -1 or 1)
    end
  end,
}
