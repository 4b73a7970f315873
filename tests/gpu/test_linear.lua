-- tests/gpu/test_linear.lua -- linear, adding or not, and linear_glu for each format of weights: what
-- the references say, and the same bits from the kernels for few rows and for many.

local harness = require "tests.gpu.harness"
local linear = require "gen.ops.linear"
local linear_glu = require "gen.ops.linear_glu"
local spec = require "tests.support.spec"
local weights = require "tests.gpu.weights"

-- Rows of y lie `stride` apart; `old` is what is added to.
local function run(c, x, bytes, old)
  local dtype = c.dtype or "bf16"
  local stride = c.stride or c.n
  local rows = #x
  local glu = c.activation ~= nil
  local weight = { dims = { c.n, c.k }, format = c.format }
  local y = harness.result(dtype, rows * stride)
  if old then y = harness.changed(harness[dtype](old)) end
  return harness.run {
    op = glu and "linear_glu" or "linear",
    node = {
      inputs = { x = { dims = { "tokens", c.k } }, weight = weight, up = glu and weight or nil },
      y = { dims = { "tokens", c.n }, dtype = dtype },
      attrs = { activation = c.activation, epilogue = old and "add" or nil },
    },
    args = {
      y = y, y_stride = stride, x = harness.bf16(x), weight = bytes, rows = rows,
    },
  }
end

local function expected(x, row_of)
  local list = {}
  for i = 1, #x do
    list[i] = {}
    row_of(list[i], i)
  end
  return list
end

-- Widths of one step and of several segments; outputs that leave a tile and a block.
for _, c in ipairs {
  { format = "bf16", k = 52, n = 70, rows = 11 },
  { format = "bf16", k = 2080, n = 33, rows = 5, dtype = "f32" },
  { format = "f16", k = 60, n = 40, rows = 9 },
  { format = "f32", k = 48, n = 33, rows = 3, dtype = "f32" },
  { format = "q4_0", k = 96, n = 70, rows = 9 },
  { format = "q4_1", k = 160, n = 40, rows = 4 },
  { format = "q8_0", k = 32, n = 131, rows = 10 },
} do
  spec(("linear of %s weights, %d columns"):format(c.format, c.k), function()
    local tiles, _, rounded = weights.matrix(c.format, c.n, c.k)
    local x = harness.matrix(c.rows, c.k)

    local out = run(c, x, weights.bytes(tiles))

    harness.compare(out.y, expected(x, function(y, i) linear.reference(y, x[i], rounded) end),
      c.dtype or "bf16")
  end)
end

spec("a linear adds to what lies there, and to nothing beside it", function()
  local c = { format = "bf16", k = 72, n = 36, stride = 41 }
  local tiles, _, rounded = weights.matrix(c.format, c.n, c.k)
  local x, old = harness.matrix(7, c.k), harness.matrix(7, c.stride)

  local out = run(c, x, weights.bytes(tiles), old)

  harness.compare(out.y, expected(x, function(y, i)
    linear.reference(y, x[i], rounded)
    for j = 1, c.stride do y[j] = old[i][j] + (y[j] or 0) end
  end), "bf16")
end)

for _, c in ipairs {
  { format = "bf16", k = 72, n = 40 },
  { format = "f16", k = 64, n = 48 },
  { format = "f32", k = 136, n = 24 },
  { format = "q4_0", k = 96, n = 72 },
  { format = "q4_1", k = 160, n = 40 },
  { format = "q8_0", k = 32, n = 136 },
} do
  spec(("%s weights, %d columns, unpacked for cuBLASLt are the bf16 that our kernels multiply"):format(c.format,
    c.k), function()
    local tiles, _, rounded = weights.matrix(c.format, c.n, c.k)

    local out = harness.run_unpack {
      op = "linear",
      node = {
        inputs = { x = { dims = { "tokens", c.k } }, weight = { dims = { c.n, c.k }, format = c.format } },
        y = { dims = { "tokens", c.n } },
      },
      args = { scratch = harness.result("bf16", c.n * c.k), weight = weights.bytes(tiles), n_out = c.n },
    }

    harness.compare(out.scratch, rounded, "exact")
  end)
end

for _, c in ipairs {
  { format = "bf16", k = 140, n = 48, rows = 4, activation = "silu" },
  { format = "q4_1", k = 96, n = 40, rows = 9, activation = "gelu_tanh", dtype = "f32" },
  { format = "f32", k = 60, n = 129, rows = 2, activation = "gelu_tanh" },
} do
  spec(("linear_glu of %s weights, %s"):format(c.format, c.activation), function()
    local gate, _, gate_rows = weights.matrix(c.format, c.n, c.k)
    local up, _, up_rows = weights.matrix(c.format, c.n, c.k)
    local x = harness.matrix(c.rows, c.k)

    local out = run(c, x, weights.bytes(weights.in_turn(gate, up)))

    harness.compare(out.y, expected(x, function(y, i)
      linear_glu.reference(y, x[i], gate_rows, up_rows, c)
    end), c.dtype or "bf16", 1e-5)
  end)
end

spec("a row's bits don't depend on how many rows there are", function()
  for _, c in ipairs {
    { format = "q8_0", k = 160, n = 40 },
    { format = "bf16", k = 84, n = 34, activation = "silu" },
  } do
    local gate, up = weights.matrix(c.format, c.n, c.k), (weights.matrix(c.format, c.n, c.k))
    local x = harness.matrix(70, c.k) -- more than one block for many rows takes
    local bytes = weights.bytes(c.activation and weights.in_turn(gate, up) or gate)
    local all = run(c, x, bytes).raw.y
    local n_bytes = c.n * 2

    for _, n in ipairs { 1, 9, 33 } do
      local some = run(c, table.move(x, 38, 37 + n, 1, {}), bytes).raw.y
      spec.equal(some == all:sub(37 * n_bytes + 1, (37 + n) * n_bytes), true, n .. " rows")
    end
  end
end)
