-- gen/ops/pixels.lua -- y = pixels * scale: bytes of an image as numbers, where no product reads
-- them first (gen/ops/patch_embed.lua).

local launch = require "gen.launch"
local op = require "gen.op"

return op.define "pixels" {
  inputs = { "pixels" }, -- (rows, d) of u8
  attrs  = { scale = "number" },
  takes = { pixels = "u8" },
  partition = "rows",

  shape = function(pixels) return pixels end,

  bytes = function(pixels, y) return pixels.bytes + y.bytes end,

  cuda = function(node)
    return launch.elementwise(node, "scale", {
      x = "pixels", name = "pixels", factor = node.attrs.scale,
    })
  end,

  reference = function(y, pixels, attrs)
    for i = 1, #pixels do y[i] = pixels[i] * attrs.scale end
  end,
}
