-- gen/ops/gelu_tanh.lua -- y = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
-- Hendrycks and Gimpel 2016, arXiv:1606.08415

local launch = require "gen.launch"
local op = require "gen.op"

return op.define "gelu_tanh" {
  inputs = { "x" },
  emit   = { cpu = "cpu/elementwise.c" },
  partition = "rows",

  shape = function(x) return x end,

  hyperparameters = function() return { activation = "gelu_tanh" } end,

  bytes = function(x, y) return x.bytes + y.bytes end,

  kernel = function(node)
    local d = node.dim_name(node.inputs.x.dims[2])
    return {
      template = "cpu/elementwise.c",
      name = "gelu_tanh_" .. d:lower(),
      params = { d = d, f = "gelu_tanh", other = false },
      args = { "y", "x", "rows" },
    }
  end,

  cuda = function(node) return launch.elementwise(node, "gelu_tanh") end,

  reference = function(y, x)
    for i = 1, #x do
      local u = math.sqrt(2 / math.pi) * (x[i] + 0.044715 * x[i] ^ 3)
      y[i] = x[i] / (1 + math.exp(-2 * u))
    end
  end,
}
