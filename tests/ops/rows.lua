-- tests/ops/rows.lua -- What tests of operations on rows share: numbers, a run of one kernel on one
-- thread and on three, and how near it must be to its reference.

local spec = require "tests.support.spec"
local harness = require "tests.ops.harness"

local rows = { N_ROWS = 5 }

-- Numbers of deviation 1 that are floats; the same on every run.
local state = 1
function rows.random()
  local sum = 0
  for _ = 1, 3 do
    state = (state * 6364136223846793005 + 1442695040888963407)
    sum = sum + (state >> 40) / 2 ^ 24
  end
  return (string.unpack("<f", string.pack("<f", 2 * sum - 3)))
end

function rows.matrix(n, d)
  local list = {}
  for i = 1, n do
    list[i] = {}
    for j = 1, d do list[i][j] = rows.random() end
  end
  return list
end

function rows.flat(matrix)
  local list = {}
  for _, row in ipairs(matrix) do table.move(row, 1, #row, #list + 1, list) end
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
  i32 = "((int32_t *)(void *)one)[i]",
  bf16 = "burin_f32_of_bf16(((uint16_t *)(void *)one)[i])",
  q8 = "(" .. of_q8(1, 0) .. ")",
  q8x2 = "(" .. of_q8(2, 0) .. " + " .. of_q8(2, 1) .. ")",
}

-- Runs an op's kernel; case: { op, node, d (of y), n_rows (N_ROWS if left out), data = { x = {...} },
-- ints, bytes, values, before (a statement on y) }. node.out may be "i32". Returns rows of results.
function rows.run(family, case)
  local n_rows = case.n_rows or rows.N_ROWS
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
  for name, list in pairs(case.bytes or {}) do
    declared[#declared + 1] = ("static const uint8_t %s[] = { %s };"):format(name, table.concat(list, ", "))
    values[name] = name
  end
  for name, text in pairs(case.values or {}) do values[name] = text end
  local d, out = case.d, case.node.out or "f32"
  local stride = out == "i32" and 4 * d or require("gen.formats.act_" .. out).row_bytes(d)
  source:write("%s", main_text:format(n_rows, n_rows * d, n_rows * stride,
    table.concat(declared, "\n"), harness.call(kernel, values), case.before or "",
    (element[out]:gsub("%%d", d):gsub("%%%%", "%%"))))
  local list = {}
  for number in harness.run(family, source):gmatch "%S+" do list[#list + 1] = tonumber(number) or 0 / 0 end
  spec.equal(#list, n_rows * d)
  local found = {}
  for i = 0, n_rows - 1 do found[i + 1] = table.move(list, i * d + 1, i * d + d, 1, {}) end
  return found, source
end

local tolerance = { -- of |expected|, and of the row's largest magnitude in its place
  f32 = { 2e-6, 0 }, bf16 = { 1 / 256, 0 }, q8 = { 0, 0.51 / 127 }, q8x2 = { 0, 0.51 / 127 / 254 },
}

function rows.compare(found, expected, out)
  local relative, of_row = table.unpack(tolerance[out or "f32"])
  for i, row in ipairs(expected) do
    local largest = 0
    for _, x in ipairs(row) do largest = math.max(largest, math.abs(x)) end
    for j, x in ipairs(row) do
      spec.near(found[i][j], x, relative * math.abs(x) + of_row * largest + 1e-7,
        ("row %d, column %d"):format(i, j))
    end
  end
end

return rows
