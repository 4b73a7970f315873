-- gen/ops/sigmoid.lua -- y = 1 / (1 + e^-x).

local op = require "gen.op"

return op.define "sigmoid" {
  inputs = { "x" },
  cuda   = { kernels = 1 },
  in_place = "x",
  partition = "rows",

  shape = function(x) return x end,

  bytes = function(x, y) return x.bytes + y.bytes end,

  reference = function(y, x)
    for i = 1, #x do y[i] = 1 / (1 + math.exp(-x[i])) end
  end,
}
