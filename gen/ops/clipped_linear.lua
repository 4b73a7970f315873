-- gen/ops/clipped_linear.lua -- y = clamp(clamp(x, in_min, in_max) w', out_min, out_max): what a
-- network that was trained with 8-bit activations lets through. The bounds are the checkpoint's.

local cuda_tiles = require "gen.cuda_tiles"
local op = require "gen.op"
local size = require "gen.size"
local tiles = require "gen.tiles"

local bounds = { "in_min", "in_max", "out_min", "out_max" }

return op.define "clipped_linear" {
  -- x (rows, k), weight (n, k), and four numbers (shape ()).
  inputs = { "x", "weight", "in_min", "in_max", "out_min", "out_max" },
  -- x is clamped on its way into the product, and only then rounded; y on its way out.
  around = { in_min = -64, in_max = 64, out_min = -64, out_max = 64 }, -- beyond most of what comes
  partition = "tiles",

  shape = function(x, weight, ...)
    local k = x[#x]
    op.check(#weight == 2 and weight[2] == k, "weight must be (outputs, %s), got %s", k,
      op.shape_text(weight))
    for i, name in ipairs(bounds) do
      local bound = select(i, ...)
      op.check(#bound == 0, "%s must be a number, got %s", name, op.shape_text(bound))
    end
    return { x[1], weight[1] }
  end,

  bytes = function(x, weight, _, _, _, _, y) return x.bytes + weight.bytes + y.bytes end,

  scratch = function(node, family)
    return tiles.made_scratch(node, tiles.row_format(node, family), 1)
  end,

  kernel = function(node, family)
    local format = tiles.row_format(node, family)
    local tail, part, params = tiles.made(node, family, format, 1)
    local clip = {
      template = "cpu/rows_made.c", name = ("clip_%s_%s"):format(format, params.k:lower()),
      params = {
        k = params.k, x = params.x, x_stride = params.x_stride, from = "float", clips = true,
        cpu = family.cpu,
      },
    }
    params.make, params.from, params.clips, params.bias = clip.name, "float", true, false
    params.op = "clipped_linear"
    local n = size.of(node.inputs.weight.dims[1]):value()
    return {
      template = "cpu/linear_made.c", name = "clipped_linear_" .. tail, needs = { part, clip },
      params = params,
      args = {
        "y", "x", "weight", "in_min", "in_max", "out_min", "out_max", node.dim_name(n), "rows",
        "scratch",
      },
    }
  end,

  cuda = function(node)
    local n = size.of(node.inputs.weight.dims[1]):value()
    return cuda_tiles.linear(node, {
      op = "clipped_linear", x = "x", name = "clipped_linear", clips = true,
      text = "x w', both clamped",
      args = {
        "y", "x", "weight", "in_min", "in_max", "out_min", "out_max",
        "n_out=" .. node.dim_name(n), "rows",
      },
    })
  end,

  -- One row.
  reference = function(y, x, weight, in_min, in_max, out_min, out_max)
    for out = 1, #weight do
      local sum = 0
      for i = 1, #x do sum = sum + math.max(in_min, math.min(in_max, x[i])) * weight[out][i] end
      y[out] = math.max(out_min, math.min(out_max, sum))
    end
  end,
}
