-- tests/gpu/test_linear.lua -- linear, adding or not, and linear_glu for each format of weights: what
-- the references say, and the same bits from the kernels for few rows and for many.

local linear = require "gen.ops.linear"
local harness = require "tests.gpu.harness"
local spec = require "tests.support.spec"
local weights = require "tests.gpu.weights"

local function expected(rows, n, row_of)
  local list = {}
  for i = 1, rows do
    list[i] = {}
    row_of(list[i], i)
  end
  return list
end

-- Widths of one step and of several segments; outputs that leave a tile and a block.
local configs = {
  { format = "bf16", k = 52, n = 70, rows = 11 },
  { format = "bf16", k = 2080, n = 33, rows = 5, dtype = "f32" },
  { format = "f16", k = 60, n = 40, rows = 9 },
  { format = "f32", k = 48, n = 33, rows = 3, dtype = "f32" },
  { format = "q4_0", k = 96, n = 70, rows = 9 },
  { format = "q4_1", k = 160, n = 40, rows = 4 },
  { format = "q8_0", k = 32, n = 131, rows = 10 },
}

for _, c in ipairs(configs) do
  spec(("linear of %s weights, %d columns"):format(c.format, c.k), function()
    local dtype = c.dtype or "bf16"
    local tiles, _, rounded = weights.matrix(c.format, c.n, c.k)
    local x = harness.matrix(c.rows, c.k)

    local out = harness.run {
      op = "linear",
      node = {
        inputs = {
          x = { dims = { "tokens", c.k } }, weight = { dims = { c.n, c.k }, format = c.format },
        },
        y = { dims = { "tokens", c.n }, dtype = dtype },
      },
      args = {
        y = harness.result(dtype, c.rows * c.n), y_stride = c.n, x = harness.bf16(x),
        weight = weights.bytes(tiles), rows = c.rows,
      },
    }

    harness.compare(out.y, expected(c.rows, c.n, function(y, i)
      linear.reference(y, x[i], rounded)
    end), dtype)
  end)
end
