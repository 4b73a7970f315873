-- gen/ops/gelu.lua -- y = x Phi(x) = x / 2 (1 + erf(x / sqrt(2))), without an approximation.
-- Hendrycks and Gimpel 2016, arXiv:1606.08415

local launch = require "gen.launch"
local op = require "gen.op"

-- A sum of positive terms only, so nothing cancels: Abramowitz and Stegun 7.1.6.
local function erf(x)
  if math.abs(x) > 6 then return x > 0 and 1 or -1 end
  local sum, term, n = 0, x, 0
  while math.abs(term) > 1e-17 * math.abs(sum) do
    sum, n = sum + term, n + 1
    term = term * 2 * x * x / (2 * n + 1)
  end
  return 2 / math.sqrt(math.pi) * math.exp(-x * x) * sum
end

return op.define "gelu" {
  inputs = { "x" },
  in_place = "x",
  partition = "rows",

  shape = function(x) return x end,

  bytes = function(x, y) return x.bytes + y.bytes end,

  cuda = function(node) return launch.elementwise(node, "gelu") end,

  reference = function(y, x)
    for i = 1, #x do y[i] = x[i] / 2 * (1 + erf(x[i] / math.sqrt(2))) end
  end,
}
