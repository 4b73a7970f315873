-- gen/ops/pos_embed_bilinear.lua -- In place, x += a square table of learned positions, stretched
-- over each picture: its corners are the table's corners, and what falls between four entries is
-- mixed of them (bilinear, align_corners).   transformers' vision_utils.py, for Qwen3-VL

local op = require "gen.op"

return op.define "pos_embed_bilinear" {
  -- x (rows, d), table (side * side, d), row after row; of each patch its column and row in its
  -- picture, positions (rows, 2), and how many of them the picture has, sizes (rows, 2).
  inputs = { "x", "table", "positions", "sizes" },
  takes = { positions = "i32", sizes = "i32" },
  cuda = { kernels = 1 },
  in_place = "x",
  partition = "rows",

  shape = function(x, table, positions, sizes, attrs)
    op.check(#x == 2, "x must be (rows, d), got %s", op.shape_text(x))
    op.check(#table == 2 and table[2] == x[2],
      "table must be (side * side, %s), got %s", x[2], op.shape_text(table))
    local n = table[1]:value()
    attrs.side = math.floor(math.sqrt(n) + 0.5)
    op.check(attrs.side * attrs.side == n, "table must be a square, it has %d rows", n)
    for name, shape in pairs { positions = positions, sizes = sizes } do
      op.check(op.same_shape(shape, { x[1], 2 }),
        "%s must be (%s, 2), got %s", name, x[1], op.shape_text(shape))
    end
    return x
  end,

  bytes = function(x, _, positions, sizes, y)
    return 5 * x.bytes + positions.bytes + sizes.bytes + y.bytes
  end,

  -- One row.
  reference = function(y, x, table, positions, sizes, attrs)
    local taps = {} -- of an axis: both entries (from 0) and the weight of the second
    for axis = 1, 2 do
      local at = positions[axis] * (attrs.side - 1) / math.max(sizes[axis] - 1, 1)
      local low = math.floor(at)
      taps[axis] = { low, math.min(low + 1, attrs.side - 1), at - low }
    end
    local column, row = taps[1], taps[2]
    for i = 1, #x do
      local function entry(r, c) return table[r * attrs.side + c + 1][i] end
      local function mix(r)
        return entry(r, column[1]) * (1 - column[3]) + entry(r, column[2]) * column[3]
      end
      y[i] = x[i] + mix(row[1]) * (1 - row[3]) + mix(row[2]) * row[3]
    end
  end,
}
