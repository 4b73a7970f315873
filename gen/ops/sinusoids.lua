-- gen/ops/sinusoids.lua -- Row r is the sines of r / t, then their cosines, for d/2 timescales t
-- from 1 to `longest` in equal ratios.   Vaswani et al. 2017, arXiv:1706.03762, §3.5

local op = require "gen.op"

return op.define "sinusoids" {
  inputs = {},
  attrs  = { n = "count", d = "count", longest = "number" },
  cuda   = { kernels = 1 },

  shape = function(attrs)
    op.check(attrs.d % 2 == 0 and attrs.d >= 4, "d must be even and at least 4, got %d", attrs.d)
    return { attrs.n, attrs.d }
  end,

  bytes = function(y) return y.bytes end,

  -- Row r, from 0.
  reference = function(y, r, attrs)
    local half = attrs.d // 2
    for i = 0, half - 1 do
      local angle = r * attrs.longest ^ (-i / (half - 1))
      y[i + 1], y[half + i + 1] = math.sin(angle), math.cos(angle)
    end
  end,
}
