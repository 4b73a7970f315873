-- gen/ops/top_logits.lua -- What sampling needs of a row of logits: the 64 largest, largest first, of
-- equal ones the lower column first, the largest itself, and log sum e^x, which makes probabilities of
-- logits. It isn't a number where a logit isn't one, or is infinite, or all are -Inf.
--
-- A row is 130 numbers, as a part of gen/ops/top_parts.lua is: 64 columns, their logits, the
-- largest, log sum e^x.

local launch = require "gen.launch"
local op = require "gen.op"

local TOP, WORDS = launch.TOP, launch.TOP_WORDS

return op.define "top_logits" {
  inputs = { "parts" }, -- (rows, n_parts * TOP_WORDS)
  internal = true,
  takes = { parts = "i32" },
  result_dtype = "i32",
  partition = "rows",

  shape = function(parts) return { parts[1], WORDS } end,

  bytes = function(parts, y) return { min = y.bytes, max = parts.bytes + y.bytes } end,

  cuda = function(node)
    local n_parts = node.inputs.parts.dims[2] // WORDS
    return launch.one(node, {
      template = "cuda/top_logits.cu", name = "top_logits_of", width = n_parts, rows = {},
      needs = { launch.top_list },
      params = { n_parts = n_parts, words = WORDS, list = launch.top_list.name },
      args = { "y", "parts", "rows" }, blocks = { "n_rows" }, threads = 32,
    })
  end,

  -- One row.
  reference = function(y, parts)
    local function float(i) return (string.unpack("<f", string.pack("<i4", i))) end
    local list, most, sum = {}, -math.huge, 0
    for at = 0, #parts - 1, WORDS do
      for i = at + 1, at + TOP do
        if parts[i] >= 0 then list[#list + 1] = { parts[i], parts[TOP + i], float(parts[TOP + i]) } end
      end
      most = math.max(most, float(parts[at + WORDS - 1]))
    end
    for at = 0, #parts - 1, WORDS do
      sum = sum + float(parts[at + WORDS]) * math.exp(float(parts[at + WORDS - 1]) - most)
    end
    table.sort(list, function(a, b) return a[3] > b[3] or (a[3] == b[3] and a[1] < b[1]) end)
    for i = 1, TOP do y[i], y[TOP + i] = table.unpack(list[i] or { -1, 0 }, 1, 2) end
    for i, x in ipairs { most, most + math.log(sum) } do
      y[2 * TOP + i] = string.unpack("<i4", string.pack("<f", x))
    end
  end,
}
