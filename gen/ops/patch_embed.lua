-- gen/ops/patch_embed.lua -- y = (pixels * scale + shift) w' + bias: a patch's bytes as the first
-- vector of an encoder. Bytes stay bytes until the product reads them.
-- Dosovitskiy et al. 2020, arXiv:2010.11929

local op = require "gen.op"

return op.define "patch_embed" {
  inputs = { "pixels", "weight", "bias?" }, -- pixels (rows, k) of u8, weight (d, k), bias (d)
  attrs  = { scale = "number", shift = "number" },
  cuda   = { kernels = 1 }, -- whole numbers up to 255 are exact in bf16: scale and shift come last
  takes = { pixels = "u8" },

  shape = function(pixels, weight, bias)
    op.check(#pixels == 2 and #weight == 2 and weight[2] == pixels[2],
      "weight must be (d, %s), got %s", pixels[#pixels], op.shape_text(weight))
    op.check(not bias or op.same_shape(bias, { weight[1] }), "bias must be (%s), got %s",
      weight[1], bias and op.shape_text(bias))
    return { pixels[1], weight[1] }
  end,

  bytes = function(pixels, weight, bias, y)
    return pixels.bytes + weight.bytes + (bias and bias.bytes or 0) + y.bytes
  end,

  -- One row.
  reference = function(y, pixels, weight, bias, attrs)
    for out = 1, #weight do
      local sum = bias and bias[out] or 0
      for i = 1, #pixels do
        sum = sum + (pixels[i] * attrs.scale + attrs.shift) * weight[out][i]
      end
      y[out] = sum
    end
  end,
}
