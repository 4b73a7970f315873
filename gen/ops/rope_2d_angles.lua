-- gen/ops/rope_2d_angles.lua -- Cosines and sines of positions in a plane, once for all layers:
-- y (rows, d), as rope turns heads by them. passes/lower.lua makes it from rope_2d.
--
--   layout "split"   of each axis, x first: d/4 cosines, d/4 sines
--          "joined"  cosines, then sines, of each d/4 by y and d/4 by x

local op = require "gen.op"

return op.define "rope_2d_angles" {
  inputs = { "positions" }, -- (rows, 2): x, then y
  internal = true,
  attrs  = { inv_freq = "table", d = "number", layout = "string" }, -- radians a position, d/4 of them
  takes = { positions = "i32" },
  partition = "rows",

  shape = function(positions, attrs) return { positions[1], attrs.d } end,

  bytes = function(positions, y) return positions.bytes + y.bytes end,

  kernel = function(node)
    return {
      template = "cpu/rope_2d_angles.c",
      name = "rope_2d_angles_" .. node.attrs.key,
      params = {
        d = node.attrs.d, inv_freq = node.attrs.inv_freq, split = node.attrs.layout == "split",
      },
      args = { "y", "positions", "rows" },
    }
  end,

  -- One row.
  reference = function(y, position, attrs)
    local quarter = #attrs.inv_freq
    local split = attrs.layout == "split"
    for axis = 0, 1 do
      local cosines = split and 2 * axis * quarter or (1 - axis) * quarter
      local sines = cosines + (split and quarter or 2 * quarter)
      for i = 1, quarter do
        y[cosines + i] = math.cos(position[axis + 1] * attrs.inv_freq[i])
        y[sines + i] = math.sin(position[axis + 1] * attrs.inv_freq[i])
      end
    end
  end,
}
