-- gen/ops/silu.lua -- y = x / (1 + e^-x).   Elfwing et al. 2017, arXiv:1702.03118

local launch = require "gen.launch"
local op = require "gen.op"

return op.define "silu" {
  inputs = { "x" },
  emit   = { cpu = "cpu/elementwise.c" },
  partition = "rows",

  shape = function(x) return x end,

  hyperparameters = function() return { activation = "silu" } end,

  bytes = function(x, y) return x.bytes + y.bytes end,

  kernel = function(node)
    local d = node.dim_name(node.inputs.x.dims[2])
    return {
      template = "cpu/elementwise.c",
      name = "silu_" .. d:lower(),
      params = { d = d, f = "silu", other = false },
      args = { "y", "x", "rows" },
    }
  end,

  cuda = function(node) return launch.elementwise(node, "silu") end,

  reference = function(y, x)
    for i = 1, #x do y[i] = x[i] / (1 + math.exp(-x[i])) end
  end,
}
