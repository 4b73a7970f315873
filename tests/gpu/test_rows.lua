-- tests/gpu/test_rows.lua -- Kernels on rows against the references in gen/ops: norms, rope, gathers,
-- columns, and what goes number by number, on rows of bf16 and of floats.

local spec = require "tests.support.spec"
local harness = require "tests.gpu.harness"
local weights = require "tests.gpu.weights"

local N_ROWS = 5
-- Kernels of one template touch memory alike: under a sanitizer the first cases of a list will do.
local function some(list)
  return harness.check == "" and list or table.move(list, 1, #list > 4 and 2 or 1, 1, {})
end

local rows_of = { bf16 = harness.bf16, f32 = harness.f32 }

local function rows(d, dtype) return { dims = { "tokens", d }, dtype = dtype } end

-- An op's kernel and the op's reference, row by row. case: { op, d (of y), attrs, x and other (rows,
-- in x_dtype and other_dtype), weights (vectors by name), y_dtype, more (an allowance) }.
local function check(case)
  local x_dtype, y_dtype = case.x_dtype or "bf16", case.y_dtype or case.x_dtype or "bf16"
  local inputs = { x = rows(#case.x[1], x_dtype) }
  local values = { x = case.x, other = case.other }
  local args = { rows = #case.x }
  args.y, args.x = harness.result(y_dtype, #case.x * case.d), rows_of[x_dtype](case.x)
  if case.other then
    inputs.other = rows(#case.other[1], case.other_dtype or x_dtype)
    args.other = rows_of[case.other_dtype or x_dtype](case.other)
  end
  for name, vector in pairs(case.weights or {}) do
    inputs[name], args[name], values[name] = { dims = { #vector } }, harness.f32(vector), vector
  end
  local found = harness.run {
    op = case.op, args = args,
    node = { inputs = inputs, attrs = case.attrs, y = { dims = { "tokens", case.d }, dtype = y_dtype } },
  }
  local expected = harness.reference(case.op, #case.x, case.d, values, case.attrs)
  harness.compare(found.y, expected, y_dtype, case.more)
end

-- ---- Norms --------------------------------------------------------------------------------

for _, dtype in ipairs(some { "bf16", "f32" }) do
  spec("rms_norm norms rows of any width, of " .. dtype, function()
    for _, d in ipairs(some { 300, 40, 1500 }) do
      check { op = "rms_norm", d = d, attrs = { eps = 1e-5 }, x = harness.matrix(N_ROWS, d),
        x_dtype = dtype, weights = { weight = harness.numbers(d) } }
    end
  end)
end

spec("rms_norm needs no weight, takes one that lacks 1, and floats become bf16", function()
  local x, weight = harness.matrix(N_ROWS, 72), harness.numbers(72)
  check { op = "rms_norm", d = 72, attrs = { eps = 1e-6 }, x = x }
  check { op = "rms_norm", d = 72, attrs = { eps = 1e-6, offset = 1 }, x = x, weights = { weight = weight } }
  check { op = "rms_norm", d = 72, attrs = { eps = 1e-6 }, x = x, x_dtype = "f32", y_dtype = "bf16" }
end)

spec("layer_norm takes the mean off before it looks at the variance", function()
  for _, d in ipairs(some { 300, 40, 1500 }) do
    local x = harness.matrix(N_ROWS, d)
    for _, row in ipairs(x) do
      for i in ipairs(row) do row[i] = harness.round(row[i] + 64) end
    end
    check { op = "layer_norm", d = d, attrs = { eps = 1e-5 }, x = x, y_dtype = "f32", more = 2e-6,
      weights = { weight = harness.numbers(d), bias = harness.numbers(d) } }
  end
end)

-- Rows of 3 heads and what lies beside them, which stays.
local function beside(d_head) return 3 * d_head + 8 end

local function turned(x, d_head, turn)
  local expected = {}
  for i, row in ipairs(x) do
    expected[i] = table.move(row, 1, #row, 1, {})
    for h = 0, 2 do
      local head = table.move(row, h * d_head + 1, (h + 1) * d_head, 1, {})
      table.move(turn(head, i), 1, d_head, h * d_head + 1, expected[i])
    end
  end
  return expected
end

spec("head_norm norms each head by itself, with one weight, one that lacks 1, or none", function()
  for _, case in ipairs(some { { 24, "weight" }, { 24, "offset" }, { 72, "none" } }) do
    local d, kind = table.unpack(case)
    local stride = beside(d)
    local x, weight = harness.matrix(N_ROWS, stride), kind ~= "none" and harness.numbers(d) or nil
    local attrs = { eps = 1e-6, d_head = d, n_heads = 3, offset = kind == "offset" and 1 or nil }
    local found = harness.run {
      op = "head_norm",
      node = { inputs = { x = rows(3 * d), weight = weight and { dims = { d } } }, attrs = attrs },
      args = {
        x = harness.bf16(x), y = harness.result("bf16", N_ROWS * 3 * d),
        x_stride = stride, y_stride = 3 * d, weight = weight and harness.f32(weight), rows = N_ROWS,
      },
    }
    local expected = turned(x, d, function(head)
      local y = {}
      require "gen.ops.head_norm".reference(y, head, weight, attrs)
      return y
    end)
    for _, row in ipairs(expected) do
      for i = 3 * d + 1, stride do row[i] = nil end
    end
    harness.compare(found.y, expected, "bf16")
  end
end)

-- ---- Rope ---------------------------------------------------------------------------------

spec("sin_cos is right to 3e-7 for every angle of 262,144 positions", function()
  local angles = { 0, 1, -1, 262143, 262143.25, 3.14159274, 1.57079637, 131072.5, 7e-5 }
  for i = 1, 500 do angles[#angles + 1] = string.unpack("<f", string.pack("<f", (i * 7919.37) % 262144)) end
  local out = harness.run_text({
    name = "angles", args = { "y", "x" }, blocks = { 1 }, threads = #angles,
    text = ([[
extern "C" __global__ __launch_bounds__(512) void angles(float *y, const float *x)
{
    sin_cos(x[threadIdx.x], &y[2 * threadIdx.x], &y[2 * threadIdx.x + 1]);
}
]]),
  }, { x = harness.f32(angles), y = harness.result("f32", 2 * #angles) })
  for i, angle in ipairs(angles) do
    angle = string.unpack("<f", string.pack("<f", angle))
    spec.near(out.y[2 * i - 1], math.sin(angle), 3e-7, "sine of " .. angle)
    spec.near(out.y[2 * i], math.cos(angle), 3e-7, "cosine of " .. angle)
  end
end)

spec("rope turns pairs by the position's angles; pairs that stand still keep their bits", function()
  for _, case in ipairs(some { { 24, 12, "bf16" }, { 24, 12, "f32" }, { 80, 10, "bf16" }, { 320, 160, "f32" } }) do
    local d, turning, dtype = table.unpack(case)
    local positions, inv_freq = { 0, 7, 8191, 262143, -1 }, {}
    for i = 1, d // 2 do
      inv_freq[i] = i <= turning and string.unpack("<f", string.pack("<f", 10000 ^ (-2 * (i - 1) / d))) or 0.0
    end
    local x = harness.matrix(N_ROWS, beside(d))
    local found = harness.run {
      op = "rope",
      node = { inputs = { x = rows(3 * d, dtype) }, attrs = { d_head = d, n_heads = 3, inv_freq = inv_freq } },
      args = {
        y = harness.changed(rows_of[dtype](x)), y_stride = beside(d),
        positions = harness.i32(positions), rows = N_ROWS,
      },
    }
    local expected = turned(x, d, function(head, i)
      local angles, y = {}, {}
      for j, f in ipairs(inv_freq) do
        local angle = string.unpack("<f", string.pack("<f", positions[i] * f))
        angles[j], angles[d // 2 + j] = math.cos(angle), math.sin(angle)
      end
      require "gen.ops.rope".reference(y, head, angles)
      return y
    end)
    harness.compare(found.y, expected, dtype)
    for i = 0, N_ROWS - 1 do
      for j = turning + 1, d // 2 do
        spec.equal(found.y[i * beside(d) + j], x[i + 1][j])
      end
    end
  end
end)

-- ---- Number by number -----------------------------------------------------------------------

spec("add, mul, silu, gelu, gelu_tanh, copy and scale go number by number", function()
  local x, other = harness.matrix(N_ROWS, 300), harness.matrix(N_ROWS, 300)
  for _, op in ipairs(some { "add", "silu", "mul", "gelu", "gelu_tanh", "copy", "scale" }) do
    check { op = op, d = 300, x = x, attrs = { factor = 0.3 },
      other = (op == "add" or op == "mul") and other or nil }
  end
end)

spec("rows of floats and of bf16 can meet", function()
  local x, other = harness.matrix(N_ROWS, 41), harness.matrix(N_ROWS, 41)
  check { op = "add", d = 41, x = x, other = other, x_dtype = "f32", other_dtype = "bf16" }
  check { op = "mul", d = 41, x = x, other = other, x_dtype = "f32", y_dtype = "bf16" }
  check { op = "convert", d = 41, x = x, x_dtype = "f32", y_dtype = "bf16" }
end)

spec("add_vector, standardize, scale_by and mul_softplus meet every row with a weight", function()
  local x = harness.matrix(N_ROWS, 300)
  check { op = "add_vector", d = 300, x = x, weights = { weight = harness.numbers(300) } }
  check { op = "standardize", d = 300, x = x, x_dtype = "f32", more = 1e-6,
    weights = { bias = harness.numbers(300), scale = harness.numbers(300) } }
  check { op = "scale_by", d = 300, x = x, weights = { weight = { 0.7 } } }

  local weight, expected = harness.numbers(20), {}
  for i, row in ipairs(x) do
    expected[i] = {}
    for h = 0, 14 do
      local y = {}
      require "gen.ops.mul_softplus".reference(y, table.move(row, h * 20 + 1, h * 20 + 20, 1, {}), weight,
        { factor = 0.3 })
      table.move(y, 1, 20, h * 20 + 1, expected[i])
    end
  end
  local found = harness.run {
    op = "mul_softplus",
    node = { inputs = { x = rows(300), weight = { dims = { 20 } } }, attrs = { factor = 0.3 } },
    args = { x = harness.bf16(x), weight = harness.f32(weight), rows = N_ROWS, y = harness.result("bf16", 5 * 300) },
  }
  harness.compare(found.y, expected, "bf16")
end)

spec("softcap goes through a row of any width", function()
  local x = harness.matrix(3, 2500)
  for _, row in ipairs(x) do
    for i in ipairs(row) do row[i] = row[i] * 30 end
  end
  check { op = "softcap", d = 2500, x = x, x_dtype = "f32", attrs = { cap = 30 } }
end)

spec("pixels are bytes as numbers", function()
  local bytes = {}
  for i = 0, 2 * 130 - 1 do bytes[i + 1] = i * 7 % 256 end
  local found = harness.run {
    op = "pixels",
    node = { inputs = { pixels = rows(130, "u8") }, attrs = { scale = 1 / 255 }, y = { dtype = "bf16" } },
    args = { pixels = harness.u8(bytes), y = harness.result("bf16", #bytes), rows = 2 },
  }
  local expected = {}
  for i, byte in ipairs(bytes) do expected[i] = byte / 255 end
  harness.compare(found.y, expected, "bf16")
end)

-- ---- Rows and columns -------------------------------------------------------------------------

spec("rows picks rows, and insert_rows replaces those that have an index", function()
  local x, soft = harness.matrix(9, 300), harness.matrix(3, 300)
  local index, expected = { 4, 0, 4, 8 }, {}
  local found = harness.run {
    op = "rows", node = { inputs = { x = rows(300) } },
    args = { x = harness.bf16(x), index = harness.i32(index), y = harness.result("bf16", 4 * 300), rows = 4 },
  }
  for i, at in ipairs(index) do expected[i] = x[at + 1] end
  harness.compare(found.y, expected, "bf16")

  index = { -1, 2, 0, -1, -1, 1, -1, -1, 2 }
  found = harness.run {
    op = "insert_rows", node = { inputs = { x = rows(300), table = rows(300) } },
    args = {
      y = harness.changed(harness.bf16(x)), table = harness.bf16(soft), index = harness.i32(index), rows = 9,
    },
  }
  for i, at in ipairs(index) do expected[i] = at < 0 and x[i] or soft[at + 1] end
  harness.compare(found.y, expected, "bf16")
end)

spec("layer_columns takes a layer's columns, concat puts two side by side, glu halves a row", function()
  local x, other, expected = harness.matrix(N_ROWS, 120), harness.matrix(N_ROWS, 28), {}
  local found = harness.run {
    op = "layer_columns", node = { inputs = { x = rows(120) }, attrs = { width = 40 } },
    args = { x = harness.bf16(x), layer = 2, y = harness.result("bf16", N_ROWS * 40), rows = N_ROWS },
  }
  for i, row in ipairs(x) do expected[i] = table.move(row, 81, 120, 1, {}) end
  harness.compare(found.y, expected, "bf16")

  check { op = "concat", d = 148, x = x, other = other }
  check { op = "glu", d = 60, x = x }
end)

spec("embedding gathers rows of packed tables, of every format", function()
  local ids = { 33, 0, 39, 31, 0 }
  local formats = { { "q4_1", 96 }, { "bf16", 41 }, { "q4_0", 96 }, { "q8_0", 96 }, { "f16", 41 }, { "f32", 41 } }
  for _, case in ipairs(some(formats)) do
    local format, d = table.unpack(case)
    local tiles, table_rows = weights.matrix(format, 40, d)
    local expected = {}
    for i, id in ipairs(ids) do expected[i] = table_rows[id + 1] end
    local found = harness.run {
      op = "embedding",
      node = { inputs = { weight = { dims = { 40, d }, format = format } }, y = { dtype = "bf16" } },
      args = {
        token_ids = harness.i32(ids), weight = harness.bytes(table.concat(tiles)),
        y = harness.result("bf16", #ids * d), rows = #ids,
      },
    }
    harness.compare(found.y, expected, "bf16")
  end
end)
