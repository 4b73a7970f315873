-- gen/ops/depthwise_conv.lua -- Each channel's own convolution over its frame and the frames before
-- it, within the item: y[t] = sum of weight[n - 1 - j] * x[t - j].
-- Gulati et al. 2020, arXiv:2005.08100 (Conformer)

local op = require "gen.op"

return op.define "depthwise_conv" {
  -- x (rows, d), weight (d, 1, n), frames (a multiple of rows): gen/ops/audio_conv.lua.
  inputs = { "x", "weight", "frames" },
  cuda   = { kernels = 1 },
  takes = { frames = "i32" },
  gathers = { "x" },
  partition = "rows",

  shape = function(x, weight, frames, attrs)
    op.check(#weight == 3 and op.same_shape(weight, { x[#x], 1, weight[3] }),
      "weight must be (%s, 1, n), got %s", x[#x], op.shape_text(weight))
    local all, rows = #frames == 1 and frames[1]:multiple(), x[1]:multiple()
    op.check(all and rows and all % rows == 0 and frames[1].extent == x[1].extent,
      "frames must be a multiple of %s, got %s", x[1], op.shape_text(frames))
    attrs.stride = all // rows
    return x
  end,

  bytes = function(x, weight, frames, y) return x.bytes + weight.bytes + frames.bytes + y.bytes end,

  -- One row; before[j + 1] lies j frames before it, the row itself first, as many as there are.
  reference = function(y, before, weight)
    local n = #weight[1][1]
    for i = 1, #before[1] do
      local sum = 0
      for j = 0, math.min(n, #before) - 1 do sum = sum + before[j + 1][i] * weight[i][1][n - j] end
      y[i] = sum
    end
  end,
}
