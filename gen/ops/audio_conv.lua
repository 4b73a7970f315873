-- gen/ops/audio_conv.lua -- y = relu(layer_norm(a 3 x 3 convolution over time and frequency, in
-- strides of 2)), without biases: half the frames and half the frequencies, each with a vector of
-- channels.   Zhang et al. 2023, arXiv:2303.01037 (USM); transformers' modeling_gemma4.py
--
-- A row is a frame: its frequencies one after the other, each with its channels side by side.
-- Items lie one behind the other. `frames` holds the number of each frame in its item, -1 behind
-- the last: frames of other items count as zeros, and so do those that aren't there.

local op = require "gen.op"
local size = require "gen.size"

return op.define "audio_conv" {
  -- x (rows, n_in * frequencies), weight (n_out, n_in, 3, 3) over (time, frequency), norm (n_out),
  -- frames (a multiple of rows): before any convolution.
  inputs = { "x", "weight", "norm", "frames" },
  attrs  = { eps = "number" },
  cuda   = { kernels = 1 }, -- a product of gathered columns; a block holds all of n_out
  around = { norm = 1 },
  takes = { frames = "i32" },
  gathers = { "x" },

  shape = function(x, weight, norm, frames, attrs)
    op.check(#weight == 4 and op.same_shape({ weight[3], weight[4] }, { 3, 3 }),
      "weight must be (n_out, n_in, 3, 3), got %s", op.shape_text(weight))
    op.check(op.same_shape(norm, { weight[1] }), "norm must be (%s), got %s", weight[1],
      op.shape_text(norm))
    local rows, n_in = #x == 2 and x[1]:multiple(), weight[2]:value()
    op.check(rows and rows % 2 == 0 and x[2]:value() % (2 * n_in) == 0,
      "x must be (2 * rows, 2 * n * %s), got %s", weight[2], op.shape_text(x))
    local all = #frames == 1 and frames[1]:multiple()
    op.check(all and all % rows == 0 and frames[1].extent == x[1].extent,
      "frames must be a multiple of %s, got %s", x[1], op.shape_text(frames))
    attrs.stride = all // rows -- frames of the item between x's rows
    return { size.extent(x[1].extent) * (rows // 2), x[2]:value() // n_in // 2 * weight[1] }
  end,

  bytes = function(x, weight, norm, frames, y)
    return x.bytes + weight.bytes + norm.bytes + frames.bytes + y.bytes
  end,

  -- One row of y from rows 2 r - 1, 2 r, 2 r + 1 of x; nil for those of no or another item.
  reference = function(y, before, row, after, weight, norm, attrs)
    local n_out, n_in = #weight, #weight[1]
    local n_freq = #row // n_in
    for f = 0, n_freq // 2 - 1 do
      local sums, mean, variance = {}, 0, 0
      for out = 1, n_out do
        local sum = 0
        for t, frame in pairs { before or false, row, after or false } do
          for df = -1, 1 do
            local at = 2 * f + df
            for channel = 1, frame and at >= 0 and at < n_freq and n_in or 0 do
              sum = sum + frame[at * n_in + channel] * weight[out][channel][t][df + 2]
            end
          end
        end
        sums[out], mean = sum, mean + sum / n_out
      end
      for out = 1, n_out do variance = variance + (sums[out] - mean) ^ 2 / n_out end
      for out = 1, n_out do
        local normed = (sums[out] - mean) / math.sqrt(variance + attrs.eps) * norm[out]
        y[f * n_out + out] = math.max(0, normed)
      end
    end
  end,
}
