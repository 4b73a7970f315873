-- tests/gpu/test_packed_attention.lua -- packed_attention on a GPU: right, and an item's bits are the
-- same alone and among others, whatever they hold.

local spec = require "tests.support.spec"
local harness = require "tests.gpu.harness"
local op = require "gen.ops.packed_attention"

local once = { { "random", "late", 1 } }

-- Rows of q, k and v side by side, with 8 columns of nothing behind them. `begin` as the op has it.
local function run(shape, rows, begin, runs)
  local width = shape.heads * shape.d
  local bytes = harness.bf16(rows).bytes
  local qkv = { dims = { "soft", width }, dtype = "bf16" }
  local stride = 3 * width + 8
  return harness.run {
    op = "packed_attention", runs = runs,
    node = {
      inputs = { q = qkv, k = qkv, v = qkv, item_begin = { dims = { "items" }, dtype = "i32" } },
      attrs = { d_head = shape.d, n_heads = shape.heads, scale = shape.scale },
      y = { dims = qkv.dims, dtype = shape.y or "bf16" },
    },
    args = {
      y = harness.result(shape.y or "bf16", #rows * width), rows = #rows,
      q = harness.bytes(bytes), q_stride = stride,
      k = harness.bytes(bytes:sub(2 * width + 1)), k_stride = stride,
      v = harness.bytes(bytes:sub(4 * width + 1)), v_stride = stride,
      item_begin = harness.i32(begin),
    },
  }
end

local function part(list, from, n) return table.move(list, from + 1, from + n, 1, {}) end

-- Rows first ... first + n - 1 as their item's, head by head.
local function expected(shape, rows, first, n)
  local d, width, result = shape.d, shape.heads * shape.d, {}
  for i = 1, n do result[i] = {} end
  for head = 0, shape.heads - 1 do
    local keys, values = {}, {}
    for i = 1, n do
      keys[i] = part(rows[first + i], width + head * d, d)
      values[i] = part(rows[first + i], 2 * width + head * d, d)
    end
    for i = 1, n do
      local y = {}
      op.reference(y, part(rows[first + i], head * d, d), keys, values, { scale = shape.scale })
      table.move(y, 1, d, head * d + 1, result[i])
    end
  end
  return result
end

for _, shape in ipairs {
  { heads = 3, d = 64 }, { heads = 2, d = 72, scale = 0.125, y = "f32" }, { heads = 2, d = 8 },
  { heads = 1, d = 24 }, { heads = 1, d = 136 },
} do
  spec(("%d heads of %d: near the reference, and the same bits alone and among others"):format(
    shape.heads, shape.d), function()
    local n_of, width = { 9, 70, 1, 64, 67 }, shape.heads * shape.d
    local rows, begin = harness.matrix(211, 3 * width + 8), { 0 }
    for i, n in ipairs(n_of) do begin[i + 1] = begin[i] + n end
    table.move({ 211, 211, 211 }, 1, 3, #begin + 1, begin)

    local together = run(shape, rows, begin, once)

    local row_bytes = #together.raw.y // 211
    for i, n in ipairs(n_of) do
      if i ~= 4 then
        local alone = run(shape, part(rows, begin[i], n), { 0, n, n }, i ~= 2 and once or nil)
        -- weights are rounded to bf16, off by 2^-9 at most, and are of values of up to 3
        harness.compare(alone.y, expected(shape, rows, begin[i], n), shape.y or "bf16", 1 / 64)
        local from, to = begin[i] * row_bytes + 1, begin[i + 1] * row_bytes
        spec.equal(alone.raw.y == together.raw.y:sub(from, to), true)
      end
    end
    for i = 1, 211 do -- all but the second item
      if i <= begin[2] or i > begin[3] then
        for j = 1, #rows[i] do rows[i][j] = 0 / 0 end
      end
    end
    local amid_nan = run(shape, rows, begin, once)
    local from, to = begin[2] * row_bytes + 1, begin[3] * row_bytes
    spec.equal(amid_nan.raw.y:sub(from, to) == together.raw.y:sub(from, to), true)
  end)
end
