-- gen/ops/rope_2d.lua -- Rotary position embedding of what lies in a plane, in place: one half of
-- a head's pairs is turned by the column x, the other by the row y, each by
-- position * theta^(-4i/d).   Su et al. 2021, arXiv:2104.09864; Heo et al. 2024, arXiv:2403.13298
--
--   layout "split"   the head's first half is a head of its own for x, the second for y: pairs
--                    (i, i + d/4) within each (Gemma 4; transformers' modeling_gemma4.py)
--          "joined"  pairs (i, i + d/2) of the whole head, of which the first d/4 turn by y, the
--                    others by x (Qwen; transformers' modeling_qwen3_vl.py)

local launch = require "gen.launch"
local op = require "gen.op"

local function f32(x) return (string.unpack("<f", string.pack("<f", x))) end

return op.define "rope_2d" {
  -- x (rows, n_heads * d_head), positions (rows, 2): x, then y; lowered: they become angles.
  inputs = { "x", "positions" },
  angles = "rope_2d_angles",
  attrs  = { theta = "number", d_head = "number?", layout = "string?" }, -- "split" if left out
  takes = { positions = "i32" },
  in_place = "x",
  strided = { "x" },
  partition = "rows",

  shape = function(x, positions, attrs)
    op.check(#x == 2, "x must be (rows, n_heads * d_head), got %s", op.shape_text(x))
    op.check(op.same_shape(positions, { x[1], 2 }), "positions must be (%s, 2), got %s", x[1],
      op.shape_text(positions))
    local n_heads, d_head = op.heads(x[2], attrs.d_head)
    op.check(d_head % 4 == 0, "d_head must be a multiple of 4, got %d", d_head)
    op.check(attrs.theta > 0, "theta must be positive")
    attrs.layout = attrs.layout or "split"
    op.check(attrs.layout == "split" or attrs.layout == "joined", "unknown layout '%s'",
      attrs.layout)
    attrs.n_heads, attrs.d_head, attrs.inv_freq = n_heads, d_head, {}
    for i = 0, d_head // 4 - 1 do attrs.inv_freq[i + 1] = f32(attrs.theta ^ (-4 * i / d_head)) end
    return x
  end,

  bytes = function(x, positions, y) return x.bytes + positions.bytes + y.bytes end,

  -- "split" is rope in heads of half the width, by x and by y in turn.
  kernel = function(node)
    local axes = node.attrs.layout == "split" and 2 or 1
    local d_head, n_heads = node.attrs.d_head, node.attrs.n_heads
    local d = axes == 1 and node.dim_name(d_head, "d_head") or tostring(d_head // 2)
    return {
      template = "cpu/rope.c",
      name = ("rope_2d_%s_%d"):format(node.attrs.layout, d_head),
      params = { d = d, axes = axes },
      args = { "y", "y_stride", tostring(axes * n_heads), "angles", "rows" },
    }
  end,

  cuda = function(node)
    local d_head, layout = node.attrs.d_head, node.attrs.layout
    local d, at_once = node.dim_name(d_head, "d_head"), math.max(1, 256 // d_head)
    return launch.one(node, {
      template = "cuda/rope_2d.cu", name = "rope_2d_" .. layout, width = d, rows = { "x" },
      params = {
        d = d, inv_freq = node.attrs.inv_freq, split = layout == "split", at_once = at_once,
        threads = d_head // 2 * at_once,
      },
      args = {
        "y", "y_stride", "n_heads=" .. node.dim_name(node.attrs.n_heads, "n_heads"), "positions",
        "rows",
      },
      blocks = { "n_rows", ("(n_heads + %d) / %d"):format(at_once - 1, at_once) },
      threads = d_head // 2 * at_once,
    })
  end,

  -- One head of one row.
  reference = function(y, x, position, attrs)
    local quarter = #x // 4
    local split = attrs.layout == "split"
    for axis = 0, 1 do
      for i = 0, quarter - 1 do
        local first = split and 2 * axis * quarter + i or (1 - axis) * quarter + i
        local second = first + (split and quarter or 2 * quarter)
        local angle = position[axis + 1] * attrs.theta ^ (-i / quarter)
        local cos, sin = math.cos(angle), math.sin(angle)
        local a, b = x[first + 1], x[second + 1]
        y[first + 1], y[second + 1] = a * cos - b * sin, b * cos + a * sin
      end
    end
  end,
}
