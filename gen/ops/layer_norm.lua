-- gen/ops/layer_norm.lua -- y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias, row by row.
-- Ba, Kiros and Hinton 2016, arXiv:1607.06450

local launch = require "gen.launch"
local op = require "gen.op"

return op.define "layer_norm" {
  inputs = { "x", "weight", "bias" }, -- x (rows, d), weight and bias (d)
  attrs  = { eps = "number" },        -- added to the variance, under the root
  around = { weight = 1 },
  partition = "rows",

  shape = function(x, weight, bias)
    local d = x[#x]
    op.check(#weight == 1 and weight[1] == d,
      "weight must be (%s), got %s", d, op.shape_text(weight))
    op.check(#bias == 1 and bias[1] == d, "bias must be (%s), got %s", d, op.shape_text(bias))
    return x
  end,

  bytes = function(x, weight, bias, y) return x.bytes + weight.bytes + bias.bytes + y.bytes end,

  cuda = function(node)
    local d, n = node.dim_name(node.inputs.x.dims[2]), node.inputs.x.dims[2]
    local threads = launch.threads(n)
    return launch.one(node, {
      template = "cuda/layer_norm.cu", name = "layer_norm", width = d, rows = { "x" },
      params = {
        d = d, per_thread = (n + threads - 1) // threads, threads = threads, eps = node.attrs.eps,
      },
      args = { "y", "x", "weight", "bias", "rows" }, blocks = { "n_rows" }, threads = threads,
    })
  end,

  -- One row.
  reference = function(y, x, weight, bias, attrs)
    local mean, variance = 0, 0
    for i = 1, #x do mean = mean + x[i] / #x end
    for i = 1, #x do variance = variance + (x[i] - mean) ^ 2 / #x end
    local scale = 1 / math.sqrt(variance + attrs.eps)
    for i = 1, #x do y[i] = (x[i] - mean) * scale * weight[i] + bias[i] end
  end,
}
