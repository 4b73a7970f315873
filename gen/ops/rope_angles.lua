-- gen/ops/rope_angles.lua -- Cosines and sines of a step's positions, once for all layers:
-- y (rows, d): d/2 cosines, d/2 sines. passes/lower.lua makes it from rope.

local op = require "gen.op"

return op.define "rope_angles" {
  inputs = { "positions" },              -- (rows)
  internal = true,
  attrs  = { inv_freq = "table", d = "number" }, -- radians a position, d/2 of them
  emit   = { cpu = "cpu/rope_angles.c" },
  takes = { positions = "i32" },
  partition = "rows",

  shape = function(positions, attrs)
    return { positions[1], attrs.d }
  end,

  bytes = function(positions, y) return positions.bytes + y.bytes end,

  kernel = function(node)
    return {
      template = "cpu/rope_angles.c",
      name = "rope_angles_" .. node.attrs.key,
      params = { d = node.attrs.d, inv_freq = node.attrs.inv_freq },
      args = { "y", "positions", "rows" },
    }
  end,

  -- One row.
  reference = function(y, position, attrs)
    local half = #attrs.inv_freq
    for i = 1, half do
      y[i] = math.cos(position * attrs.inv_freq[i])
      y[half + i] = math.sin(position * attrs.inv_freq[i])
    end
  end,
}
