-- gen/ops/rope.lua -- Rotary position embedding, in place: in each head the pairs (i, i + d/2)
-- are turned by position * theta^(-2i/d).   Su et al. 2021, arXiv:2104.09864
--
-- With scaling = "llama3" low frequencies are slowed down by `factor`, those between
-- low_factor and high_factor turns in `original` positions by a mixture of both.
-- Llama Team 2024, arXiv:2407.21783; transformers' modeling_rope_utils.py
--
-- With scaling = "proportional" the pairs of the highest frequencies turn, `partial` of all; the
-- others stand still (Gemma 4's global layers).

local launch = require "gen.launch"
local op = require "gen.op"
local size = require "gen.size"

local function f32(x) return (string.unpack("<f", string.pack("<f", x))) end

-- Radians a position for each of the d/2 pairs, as floats.
local function frequencies(attrs, d)
  local freq = {}
  for i = 0, d // 2 - 1 do freq[i + 1] = attrs.theta ^ (-2 * i / d) end
  if attrs.scaling == "llama3" then
    for i, f in ipairs(freq) do
      local turns = attrs.original * f / (2 * math.pi)
      local smooth = (turns - attrs.low_factor) / (attrs.high_factor - attrs.low_factor)
      smooth = math.max(0, math.min(1, smooth))
      freq[i] = (1 - smooth) * f / attrs.factor + smooth * f
    end
  end
  local turning = attrs.scaling == "proportional" and attrs.partial * d // 2 or d // 2
  for i, f in ipairs(freq) do
    freq[i] = i <= turning and f32(f) or 0.0
    op.check(freq[i] == freq[i] and math.abs(freq[i]) < math.huge,
      "with these attributes a frequency isn't finite")
  end
  return freq
end

-- By how much the slowest pair is slowed down: 1 without scaling; none where a pair stands still.
local function slowed(attrs)
  local most = 1
  if not attrs.scaling then return most end
  for i, f in ipairs(attrs.inv_freq) do
    if f == 0 then return nil end
    most = math.max(most, attrs.theta ^ (-2 * (i - 1) / attrs.d_head) / f)
  end
  return f32(most)
end

-- What each scaling needs.
local scalings = {
  llama3 = { "factor", "low_factor", "high_factor", "original" },
  proportional = { "partial" },
}

return op.define "rope" {
  inputs = { "x", "positions" }, -- x (rows, n_heads * d_head); lowered: positions become angles
  attrs  = {
    theta = "number", d_head = "number?", scaling = "string?", factor = "number?",
    low_factor = "number?", high_factor = "number?", original = "number?", partial = "number?",
  },
  emit   = { cpu = "cpu/rope.c" },
  angles = "rope_angles",
  takes = { positions = "i32" },
  in_place = "x",
  strided = { "x" },
  partition = "rows",

  shape = function(x, positions, attrs)
    op.check(#x == 2, "x must be (rows, n_heads * d_head), got %s", op.shape_text(x))
    op.check(#positions == 1 and positions[1] == x[1],
      "positions must be (%s), got %s", x[1], op.shape_text(positions))
    local n_heads, d_head = op.heads(x[2], attrs.d_head)
    op.check(d_head % 2 == 0, "d_head must be even, got %d", d_head)
    op.check(attrs.theta > 0, "theta must be positive")
    local needs = scalings[attrs.scaling or false] or {}
    op.check(not attrs.scaling or scalings[attrs.scaling], "unknown scaling '%s'", attrs.scaling)
    for _, name in ipairs(needs) do
      op.check(attrs[name], "scaling = \"%s\" needs %s", attrs.scaling, name)
    end
    op.check(not attrs.partial or attrs.partial > 0 and attrs.partial <= 1,
      "partial must be above 0 and at most 1, got %s", tostring(attrs.partial))
    attrs.n_heads, attrs.d_head = n_heads, d_head
    attrs.inv_freq = frequencies(attrs, d_head)
    return x
  end,

  hyperparameters = function(_, _, attrs)
    return {
      rope_theta = attrs.theta, d_rope = attrs.d_head, rope_scaling = attrs.scaling or "none",
      rope_factor = attrs.factor, rope_low_factor = attrs.low_factor,
      rope_high_factor = attrs.high_factor, rope_original = attrs.original,
      rope_slowed = slowed(attrs),
      rope_partial = attrs.partial,
    }
  end,

  bytes = function(x, angles, y) return x.bytes + angles.bytes + y.bytes end,

  kernel = function(node)
    local d = node.dim_name(size.of(node.attrs.d_head):value(), "d_head")
    return {
      template = "cpu/rope.c",
      name = "rope_" .. d:lower(),
      params = { d = d, axes = 1 },
      args = { "y", "y_stride", node.dim_name(node.attrs.n_heads, "n_heads"), "angles", "rows" },
    }
  end,

  cuda = function(node)
    local d, turning = node.dim_name(size.of(node.attrs.d_head):value(), "d_head"), {}
    for i, f in ipairs(node.attrs.inv_freq) do -- pairs that stand still are the last
      if i == 1 or f ~= 0 then turning[i] = f end
    end
    local at_once = math.max(1, 128 // #turning) -- heads
    return launch.one(node, {
      template = "cuda/rope.cu", name = "rope", width = d, rows = { "x" },
      params = { d = d, inv_freq = turning, at_once = at_once, threads = #turning * at_once },
      args = {
        "y", "y_stride", "n_heads=" .. node.dim_name(node.attrs.n_heads, "n_heads"), "positions",
        "rows",
      },
      blocks = { "n_rows", ("n_rows < 256 ? (n_heads + %d) / %d : 1"):format(at_once - 1, at_once) },
      threads = #turning * at_once,
    })
  end,

  -- One head of one row; angles as rope_angles gives them.
  reference = function(y, x, angles)
    local half = #x // 2
    for i = 1, half do
      local cos, sin = angles[i], angles[half + i]
      y[i] = x[i] * cos - x[half + i] * sin
      y[half + i] = x[half + i] * cos + x[i] * sin
    end
  end,
}
