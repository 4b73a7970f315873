-- tests/gpu/test_encoder_rows.lua -- What an encoder of images does row by row, on a GPU: positions in a
-- plane, pooling.

local spec = require "tests.support.spec"
local harness = require "tests.gpu.harness"
local weights = require "tests.gpu.weights"

local N_ROWS = 5
local positions = { 0, 0, 1, 0, 3, 2, 7, 30, 39, 21 } -- column, line of each row
local rows_of = { bf16 = harness.bf16, f32 = harness.f32 }

local function reference(op_name, ...)
  local y = {}
  require("gen.ops." .. op_name).reference(y, ...)
  return y
end

for _, case in ipairs { { "split", 24, "bf16" }, { "joined", 24, "f32" }, { "split", 72, "f32" } } do
  local layout, d, dtype = table.unpack(case)
  spec(("rope_2d turns by column and by line, %s, heads of %d"):format(layout, d), function()
    local n_heads, stride = 3, 3 * d + 8
    local attrs = { theta = 100, d_head = d, n_heads = n_heads, layout = layout, inv_freq = {} }
    for i = 0, d // 4 - 1 do attrs.inv_freq[i + 1] = 100 ^ (-4 * i / d) end
    local x = harness.matrix(N_ROWS, stride)
    local found = harness.run {
      op = "rope_2d",
      node = { inputs = { x = { dims = { "soft", n_heads * d }, dtype = dtype } }, attrs = attrs },
      args = {
        y = harness.changed(rows_of[dtype](x)), y_stride = stride, positions = harness.i32(positions),
        rows = N_ROWS,
      },
    }
    local expected = {}
    for i, row in ipairs(x) do
      expected[i] = table.move(row, 1, stride, 1, {})
      for h = 0, n_heads - 1 do
        local head = table.move(row, h * d + 1, h * d + d, 1, {})
        local turned = reference("rope_2d", head, { positions[2 * i - 1], positions[2 * i] }, attrs)
        table.move(turned, 1, d, h * d + 1, expected[i])
      end
    end
    -- An angle of 39 in floats is off by 2e-6; where two products cancel, that is what is left.
    harness.compare(found.y, expected, dtype, 4e-6)
  end)
end

spec("position_embedding adds the vectors of both axes; a padded row's are any", function()
  for _, case in ipairs { { "bf16", "axis_first", "bf16" }, { "q4_0", "axis_last", "f32" } } do
    local format, order, dtype = table.unpack(case)
    local d, n = 96, 40
    local x, tiles, vectors = harness.matrix(N_ROWS + 1, d), weights.matrix(format, 2 * n, d)
    local padded = table.move(positions, 1, #positions, 1, {})
    padded[#padded + 1], padded[#padded + 2] = -1, -1
    local found = harness.run {
      op = "position_embedding",
      node = { inputs = {
        x = { dims = { "soft", d }, dtype = dtype },
        weight = { dims = order == "axis_first" and { 2, n, d } or { n, 2, d }, format = format },
      } },
      args = {
        y = harness.changed(rows_of[dtype](x)), weight = harness.bytes(table.concat(tiles)),
        positions = harness.i32(padded), rows = N_ROWS + 1,
      },
    }
    local of_x, of_y, expected = {}, {}, {}
    for i = 1, n do
      of_x[i] = vectors[order == "axis_first" and i or 2 * i - 1]
      of_y[i] = vectors[order == "axis_first" and n + i or 2 * i]
    end
    for i, row in ipairs(x) do
      local position = { math.max(0, padded[2 * i - 1]), math.max(0, padded[2 * i]) }
      expected[i] = reference("position_embedding", row, of_x, of_y, position)
    end
    harness.compare(found.y, expected, dtype, 1e-6)
  end
end)

spec("pool is the mean of adjacent rows, in floats", function()
  local x = harness.matrix(9 * N_ROWS, 300)
  for _, scale in ipairs { 1, 6.25 } do
    local attrs = { size = 9, scale = scale ~= 1 and scale or nil }
    local found = harness.run {
      op = "pool",
      node = { inputs = { x = { dims = { "soft", 300 } } }, attrs = attrs, y = { dtype = "f32" } },
      args = { x = harness.bf16(x), y = harness.result("f32", N_ROWS * 300), rows = N_ROWS },
    }
    local expected = {}
    for i = 1, N_ROWS do expected[i] = reference("pool", table.move(x, 9 * i - 8, 9 * i, 1, {}), attrs) end
    harness.compare(found.y, expected, "f32", 1e-6)
  end
end)
