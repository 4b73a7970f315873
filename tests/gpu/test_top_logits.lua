-- tests/gpu/test_top_logits.lua -- What sampling needs of a row of logits, on a GPU: the largest 64 and
-- log sum e^x, part by part, then of all.

local spec = require "tests.support.spec"
local harness = require "tests.gpu.harness"

local N_ROWS = 2

local function float(bits) return (string.unpack("<f", string.pack("<i4", bits))) end

-- ids, logits, the largest and log sum e^x of each row.
local function top(logits)
  local d = #logits[1]
  local n_parts = (d + 2047) // 2048
  local parts = harness.run({
    op = "top_parts",
    node = {
      inputs = { logits = { dims = { "outputs", d }, dtype = "f32" } },
      y = { dims = { "outputs", 130 * n_parts }, dtype = "i32" },
    },
    args = { logits = harness.f32(logits), y = harness.result("i32", #logits * n_parts * 130), rows = #logits },
  }).y
  local found = harness.run({
    op = "top_logits",
    node = {
      inputs = { parts = { dims = { "outputs", 130 * n_parts }, dtype = "i32" } },
      y = { dims = { "outputs", 130 }, dtype = "i32" },
    },
    args = { parts = harness.i32(parts), y = harness.result("i32", #logits * 130), rows = #logits },
  }).y
  local rows = {}
  for i = 0, #logits - 1 do
    local row = { ids = {}, logits = {}, largest = float(found[i * 130 + 129]), log_sum = float(found[i * 130 + 130]) }
    for j = 1, 64 do row.ids[j], row.logits[j] = found[i * 130 + j], float(found[i * 130 + 64 + j]) end
    rows[i + 1] = row
  end
  return rows
end

-- The same by the references, which sort.
local function expected(logits)
  local parts, found = {}, {}
  require "gen.ops.top_parts".reference(parts, logits)
  require "gen.ops.top_logits".reference(found, parts)
  local ids = table.move(found, 1, 64, 1, {})
  return ids, float(found[130])
end

local function check(logits)
  for i, row in ipairs(top(logits)) do
    local ids, log_sum = expected(logits[i])
    spec.equal(table.concat(row.ids, " "), table.concat(ids, " "))
    for j, id in ipairs(ids) do
      if id >= 0 then spec.near(row.logits[j], logits[i][id + 1], 0) end
    end
    spec.near(row.largest, row.logits[1], 0)
    spec.near(row.log_sum, log_sum, 2e-6 * math.max(1, math.abs(log_sum)))
  end
end

spec("the 64 largest of a row come largest first, in rows of any width", function()
  for _, d in ipairs { 40, 136, 2049, 9000 } do
    if harness.check == "" or d < 4096 then check(harness.matrix(N_ROWS, d)) end
  end
end)

spec("of equal logits the lower id comes first, also of all", function()
  local rows = { {}, {}, {} }
  for i = 1, 3000 do
    rows[1][i], rows[2][i] = 1.5, i * 7 % 5
    rows[3][i] = i / 64 -- each better than all before: the longest way
  end
  check(rows)
end)

spec("logits that are -Inf stand last; a row of them alone has no probabilities", function()
  local row, none = {}, {}
  for i = 1, 100 do row[i], none[i] = i % 3 == 0 and i or -math.huge, -math.huge end
  local found = top { row, none }
  spec.equal(table.concat(found[1].ids, " ", 1, 3), "98 95 92")
  spec.equal(found[1].logits[34], -math.huge)
  spec.near(found[1].log_sum, 99 + math.log(1 / (1 - math.exp(-3))), 1e-4)
  spec.equal(found[2].log_sum ~= found[2].log_sum, true)
end)

spec("a logit that isn't a number or is +Inf leaves no probabilities", function()
  local rows = harness.matrix(2, 3000)
  rows[1][2500], rows[2][7] = 0 / 0, math.huge
  for _, row in ipairs(top(rows)) do spec.equal(row.log_sum ~= row.log_sum, true) end
end)
