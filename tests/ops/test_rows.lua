-- tests/ops/test_rows.lua -- Operations on rows against their references in Lua: rms_norm,
-- convert, rope_angles, rope, embedding, rows, and those element by element. Each runs on
-- one thread and on three.

local spec = require "tests.support.spec"
local harness = require "tests.ops.harness"

local N_ROWS = 5

-- Numbers of deviation 1 that are floats; the same on every run.
local state = 1
local function random()
  local sum = 0
  for _ = 1, 3 do
    state = (state * 6364136223846793005 + 1442695040888963407)
    sum = sum + (state >> 40) / 2 ^ 24
  end
  return (string.unpack("<f", string.pack("<f", 2 * sum - 3)))
end

local function matrix(n, d)
  local rows = {}
  for i = 1, n do
    rows[i] = {}
    for j = 1, d do rows[i][j] = random() end
  end
  return rows
end

local function flat(rows)
  local list = {}
  for _, row in ipairs(rows) do table.move(row, 1, #row, #list + 1, list) end
  return list
end

local main_text = [[
enum { N_ROWS = %d, N_OUT = %d, OUT_BYTES = %d };

%s

static void run(const struct burin_team *t, void *y)
{
    %s;
}

int main(void)
{
    uint8_t *one = obtain(OUT_BYTES), *three = obtain(OUT_BYTES);
%s    on_team(1, run, one);
    on_team(3, run, three);
    CHECK(memcmp(one, three, OUT_BYTES) == 0);
    for (int i = 0; i < N_OUT; i++)
        printf("%%.9g\n", (double)%s);
    return 0;
}
]]

-- Element i of one row of int8, where each of the result's rows is the sum of `planes`.
local function of_q8(planes, plane)
  local row = ("(one + (i / %%d * %d + %d) * burin_q8_stride(%%d))"):format(planes, plane)
  return ("burin_q8_scales(%s, %%d)[i %%%% %%d / 32] * (float)((int8_t *)%s)[i %%%% %%d]"):format(row, row)
end

-- One element of a result in each format, in C: row i / d, column i %% d.
local element = {
  f32 = "((float *)(void *)one)[i]",
  bf16 = "burin_f32_of_bf16(((uint16_t *)(void *)one)[i])",
  q8 = "(" .. of_q8(1, 0) .. ")",
  q8x2 = "(" .. of_q8(2, 0) .. " + " .. of_q8(2, 1) .. ")",
}

-- Runs an op's kernel; case: { op, node, d (of y), out, data = { x = {...} }, ints, values,
-- before (a statement on y) }. Returns rows of results.
local function run_op(family, case)
  local kernel = harness.kernel(case.op, case.node, family)
  local source = harness.source(family):add(kernel)
  local declared, values = {}, { y = "y", rows = "N_ROWS" }
  for name, list in pairs(case.data or {}) do
    declared[#declared + 1] = ("static const float %s[] = %s;"):format(name, harness.floats(list))
    values[name] = name
  end
  for name, list in pairs(case.ints or {}) do
    declared[#declared + 1] = ("static const int32_t %s[] = { %s };"):format(name, table.concat(list, ", "))
    values[name] = name
  end
  for name, text in pairs(case.values or {}) do values[name] = text end
  local d, out = case.d, case.node.out or "f32"
  local stride = require("gen.formats.act_" .. out).row_bytes(d)
  source:write("%s", main_text:format(N_ROWS, N_ROWS * d, N_ROWS * stride,
    table.concat(declared, "\n"), harness.call(kernel, values), case.before or "",
    (element[out]:gsub("%%d", d):gsub("%%%%", "%%"))))
  local list = {}
  for number in harness.run(family, source):gmatch "%S+" do list[#list + 1] = tonumber(number) or 0 / 0 end
  spec.equal(#list, N_ROWS * d)
  local rows = {}
  for i = 0, N_ROWS - 1 do rows[i + 1] = table.move(list, i * d + 1, i * d + d, 1, {}) end
  return rows, source
end

local tolerance = { -- of |expected|, and of the row's largest magnitude in its place
  f32 = { 2e-6, 0 }, bf16 = { 1 / 256, 0 }, q8 = { 0, 0.51 / 127 }, q8x2 = { 0, 0.51 / 127 / 254 },
}

local function compare(found, expected, out)
  local relative, of_row = table.unpack(tolerance[out])
  for i, row in ipairs(expected) do
    local largest = 0
    for _, x in ipairs(row) do largest = math.max(largest, math.abs(x)) end
    for j, x in ipairs(row) do
      spec.near(found[i][j], x, relative * math.abs(x) + of_row * largest + 1e-7,
        ("row %d, column %d"):format(i, j))
    end
  end
end

for _, family in ipairs(harness.here()) do
  local function it(name, run) spec(family.name .. ": " .. name, run) end

  for _, out in ipairs { "f32", "bf16", "q8", "q8x2" } do
    it("rms_norm gives " .. out, function()
      for _, d in ipairs { 40, 96 } do
        local x, weight = matrix(N_ROWS, d), matrix(1, d)[1]
        local found = run_op(family, {
          op = "rms_norm", d = d, data = { x = flat(x), weight = weight },
          node = {
            inputs = { x = { dims = { "tokens", d } }, weight = { dims = { d } } },
            attrs = { eps = 1e-5 }, out = out,
          },
        })
        local expected = {}
        for i = 1, N_ROWS do
          expected[i] = {}
          require "gen.ops.rms_norm".reference(expected[i], x[i], weight, { eps = 1e-5 })
        end
        compare(found, expected, out)
      end
    end)
  end

  for _, out in ipairs { "bf16", "q8", "q8x2" } do
    it("convert gives " .. out, function()
      local x = matrix(N_ROWS, 72)
      local found = run_op(family, {
        op = "convert", d = 72, data = { x = flat(x) },
        node = { inputs = { x = { dims = { "tokens", 72 } } }, out = out },
      })
      compare(found, x, out)
    end)
  end

  it("rope turns pairs of each head by the position's angles", function()
    local d, inv_freq, positions = 24, {}, { 0, 1, 7, 500, 8191 }
    for i = 1, d // 2 do inv_freq[i] = (string.unpack("<f", string.pack("<f", 10000 ^ (-2 * (i - 1) / d)))) end
    local angles = run_op(family, {
      op = "rope_angles", d = d, ints = { positions = positions },
      node = { inputs = { positions = { dims = { "tokens" } } }, attrs = { d = d, inv_freq = inv_freq, key = "a" } },
    })
    for i, position in ipairs(positions) do
      for j, f in ipairs(inv_freq) do
        local angle = (string.unpack("<f", string.pack("<f", position * f)))
        spec.near(angles[i][j], math.cos(angle), 2e-7)
        spec.near(angles[i][d // 2 + j], math.sin(angle), 2e-7)
      end
    end

    local n_heads, stride = 3, 3 * d + 8
    local x = matrix(N_ROWS, stride)
    local found = run_op(family, {
      op = "rope", d = stride, data = { x = flat(x), angles = flat(angles) },
      values = { y_stride = tostring(stride) },
      before = "    memcpy(one, x, sizeof x);\n    memcpy(three, x, sizeof x);\n",
      node = { inputs = { x = { dims = { "tokens", 3 * d } } }, attrs = { d_head = d, n_heads = n_heads } },
    })
    local expected = {}
    for i = 1, N_ROWS do
      expected[i] = table.move(x[i], 1, stride, 1, {})
      for h = 0, n_heads - 1 do
        local head = {}
        require "gen.ops.rope".reference(head, table.move(x[i], h * d + 1, h * d + d, 1, {}), angles[i])
        table.move(head, 1, d, h * d + 1, expected[i])
      end
    end
    compare(found, expected, "f32")
  end)

  it("add, mul, silu, gelu_tanh, copy and scale go element by element", function()
    local x, other = matrix(N_ROWS, 40), matrix(N_ROWS, 40)
    for _, op in ipairs { "add", "mul", "silu", "gelu_tanh", "copy", "scale" } do
      local two = op == "add" or op == "mul"
      local attrs = { factor = 0.125 }
      local found = run_op(family, {
        op = op, d = 40, data = { x = flat(x), other = two and flat(other) or nil },
        node = { inputs = { x = { dims = { "tokens", 40 } } }, attrs = attrs },
      })
      local expected = {}
      for i = 1, N_ROWS do
        expected[i] = {}
        require("gen.ops." .. op).reference(expected[i], x[i], two and other[i] or attrs)
      end
      compare(found, expected, "f32")
    end
  end)

  it("rows and embedding pick rows", function()
    local index = { 4, 0, 4, 2, 33 }
    local x = matrix(40, 24)
    local found = run_op(family, {
      op = "rows", d = 24, data = { x = flat(x) }, ints = { picked = index }, values = { index = "picked" },
      node = { inputs = { x = { dims = { "tokens", 24 } } } },
    })
    local expected = {}
    for i, at in ipairs(index) do expected[i] = x[at + 1] end
    compare(found, expected, "f32")

    -- Packed f32: a tile holds 32 rows, column after column (gen/formats/f32.lua).
    local packed = {}
    for tile = 0, 1 do
      for column = 1, 24 do
        for row = 1, 32 do packed[#packed + 1] = (x[tile * 32 + row] or {})[column] or 0 end
      end
    end
    found = run_op(family, {
      op = "embedding", d = 24, data = { packed = packed }, ints = { token_ids = index },
      values = { weight = "(const uint8_t *)(const void *)packed" },
      node = { inputs = { weight = { dims = { 40, 24 }, format = "f32" } } },
    })
    compare(found, expected, "f32")
  end)
end

harness.done()
