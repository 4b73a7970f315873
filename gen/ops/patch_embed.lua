-- gen/ops/patch_embed.lua -- y = (pixels * scale + shift) w' + bias: a patch's bytes as the first
-- vector of an encoder. Bytes stay bytes until the product reads them.
-- Dosovitskiy et al. 2020, arXiv:2010.11929

local cuda_tiles = require "gen.cuda_tiles"
local op = require "gen.op"
local size = require "gen.size"
local tiles = require "gen.tiles"

return op.define "patch_embed" {
  inputs = { "pixels", "weight", "bias?" }, -- pixels (rows, k) of u8, weight (d, k), bias (d)
  attrs  = { scale = "number", shift = "number" },
  takes = { pixels = "u8" },
  partition = "tiles",

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

  scratch = function(node, family)
    return tiles.made_scratch(node, tiles.row_format(node, family), 1)
  end,

  kernel = function(node, family)
    local format = tiles.row_format(node, family)
    local tail, part, params = tiles.made(node, family, format, 1)
    local widen = {
      template = "cpu/rows_made.c", name = ("pixels_%s_%s"):format(format, params.k:lower()),
      params = {
        k = params.k, x = params.x, x_stride = params.x_stride, from = "uint8_t", clips = false,
        scale = node.attrs.scale, shift = node.attrs.shift, cpu = family.cpu,
      },
    }
    params.make, params.from, params.clips = widen.name, "uint8_t", false
    params.bias, params.op = node.inputs.bias ~= nil, "patch_embed"
    local n = size.of(node.inputs.weight.dims[1]):value()
    local args = { "y", "pixels", "weight", node.dim_name(n), "rows", "scratch" }
    if params.bias then table.insert(args, 4, "bias") end
    return {
      template = "cpu/linear_made.c", name = "patch_embed_" .. tail, needs = { part, widen },
      params = params, args = args,
    }
  end,

  -- Whole numbers up to 255 are exact in bf16: y = scale * (pixels w') + (shift * sum(w) + bias).
  cuda = function(node)
    local n = size.of(node.inputs.weight.dims[1]):value()
    local bias = node.inputs.bias ~= nil
    local args = { "y", "pixels", "weight", "n_out=" .. node.dim_name(n), "rows" }
    if bias then table.insert(args, 4, "bias") end
    return cuda_tiles.linear(node, {
      op = "patch_embed", x = "pixels", name = bias and "patch_embed_bias" or "patch_embed",
      text = "(pixels * scale + shift) w'" .. (bias and " + bias" or ""),
      pixels = { scale = node.attrs.scale, shift = node.attrs.shift, bias = bias }, args = args,
    })
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
