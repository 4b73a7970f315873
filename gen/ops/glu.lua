-- gen/ops/glu.lua -- y = a * sigmoid(b), a and b the two halves of a row.
-- Dauphin et al. 2016, arXiv:1612.08083

local launch = require "gen.launch"
local op = require "gen.op"
local size = require "gen.size"

return op.define "glu" {
  inputs = { "x" }, -- (rows, 2 d)
  partition = "rows",

  shape = function(x)
    op.check(#x == 2 and x[2]:value() % 2 == 0, "x must be (rows, 2 d), got %s", op.shape_text(x))
    return { x[1], size.of(x[2]:value() // 2) }
  end,

  bytes = function(x, y) return x.bytes + y.bytes end,

  cuda = function(node)
    local n = node.inputs.x.dims[2] // 2
    return launch.columns(node, n, {
      template = "cuda/glu.cu", name = "glu", width = node.dim_name(n), rows = { "x" },
      params = { d = node.dim_name(n) }, args = { "y", "x", "rows" },
    })
  end,

  reference = function(y, x)
    local half = #x // 2
    for i = 1, half do y[i] = x[i] / (1 + math.exp(-x[half + i])) end
  end,
}
