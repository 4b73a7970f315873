-- gen/ops/mrope.lua -- Rotary embedding by three positions a token (time, row, column), in place:
-- of each head's first `rotary` dims the pairs (i, i + rotary/2) are turned by
-- position * theta^(-2i/rotary), each pair by one of the three positions. A text token has three
-- equal ones, which is rope.   Wang et al. 2024, arXiv:2409.12191 (Qwen2-VL)
--
-- `sections` says how many pairs each position turns. They lie one after the other, or, if
-- interleaved, in turn (t h w t h w ... t t) so that each has high and low frequencies.
-- Qwen3-VL and Qwen3.5: transformers' recomposition_frequencies.

local op = require "gen.op"

local function f32(x) return (string.unpack("<f", string.pack("<f", x))) end

-- Which position turns each pair: 1 (time), 2 (row), 3 (column).
local function streams(sections, interleaved)
  local stream = {}
  for i = 0, sections[1] + sections[2] + sections[3] - 1 do
    if interleaved then
      local turn = i % 3 + 1
      stream[i + 1] = turn > 1 and i < 3 * sections[turn] and turn or 1
    else
      stream[i + 1] = i < sections[1] and 1 or i < sections[1] + sections[2] and 2 or 3
    end
  end
  return stream
end

return op.define "mrope" {
  inputs = { "x", "positions" }, -- x (rows, n_heads * d_head), positions (rows, 3)
  attrs  = {
    theta = "number", sections = "list", interleaved = "boolean?",
    rotary = "number?", -- all of d_head if left out
    d_head = "number?",
  },
  takes = { positions = "i32" },
  cuda = { kernels = 1 },
  in_place = "x",
  strided = { "x" },
  partition = "rows",

  shape = function(x, positions, attrs)
    op.check(#x == 2, "x must be (rows, n_heads * d_head), got %s", op.shape_text(x))
    op.check(op.same_shape(positions, { x[1], 3 }),
      "positions must be (%s, 3), got %s", x[1], op.shape_text(positions))
    local n_heads, d_head = op.heads(x[2], attrs.d_head)
    local rotary = attrs.rotary or d_head
    op.check(rotary % 2 == 0 and rotary > 0 and rotary <= d_head,
      "rotary must be even and at most d_head = %d, got %s", d_head, tostring(rotary))
    op.check(attrs.theta > 0, "theta must be positive")
    local s = attrs.sections
    op.check(#s == 3 and s[1] + s[2] + s[3] == rotary // 2,
      "sections must be three counts with the sum rotary / 2 = %d", rotary // 2)
    attrs.n_heads, attrs.d_head, attrs.rotary = n_heads, d_head, rotary
    attrs.stream, attrs.inv_freq = streams(s, attrs.interleaved), {}
    for i = 0, rotary // 2 - 1 do attrs.inv_freq[i + 1] = f32(attrs.theta ^ (-2 * i / rotary)) end
    return x
  end,

  hyperparameters = function(_, _, attrs)
    return { rope_theta = attrs.theta, rope_scaling = "none" }
  end,

  bytes = function(x, positions, y) return x.bytes + positions.bytes + y.bytes end,

  -- One head of one row; positions are its three.
  reference = function(y, x, positions, attrs)
    local half = attrs.rotary // 2
    for i = 1, #x do y[i] = x[i] end
    for i = 1, half do
      local angle = positions[attrs.stream[i]] * attrs.inv_freq[i]
      local cos, sin = math.cos(angle), math.sin(angle)
      y[i] = x[i] * cos - x[half + i] * sin
      y[half + i] = x[half + i] * cos + x[i] * sin
    end
  end,
}
