-- gen/ops/top_parts.lua -- Of each PART columns of a row the 64 largest, largest first, of equal ones
-- the lower column first; and what the row's log sum e^x is made of. gen/ops/top_logits.lua puts
-- the parts together: so a vocabulary is read by many warps, and nothing of its size is written.
--
-- A part is 130 numbers: 64 columns, their logits, the largest, the sum of e^(x - largest). Logits
-- are the bits of floats; where there are less than 64, columns are -1.

local launch = require "gen.launch"
local op = require "gen.op"

local PART = 2048
local TOP, WORDS = launch.TOP, launch.TOP_WORDS

return op.define "top_parts" {
  inputs = { "logits" }, -- (rows, d)
  internal = true,
  result_dtype = "i32",
  partition = "rows",

  shape = function(logits)
    op.check(#logits == 2, "logits must be (rows, d), got %s", op.shape_text(logits))
    return { logits[1], (logits[2]:value() + PART - 1) // PART * WORDS }
  end,

  bytes = function(logits, y) return logits.bytes + y.bytes end,

  cuda = function(node)
    local d = node.inputs.logits.dims[2]
    local n_parts = (d + PART - 1) // PART
    return launch.one(node, {
      template = "cuda/top_parts.cu", name = "top_parts", width = node.dim_name(d), rows = { "logits" },
      needs = { launch.top_list },
      params = { d = node.dim_name(d), part = PART, n_parts = n_parts, words = WORDS, list = launch.top_list.name },
      args = { "y", "logits", "rows" }, blocks = { "n_rows", tostring((n_parts + 3) // 4) },
      threads = 128,
    })
  end,

  -- One row.
  reference = function(y, logits)
    local function bits(x) return (string.unpack("<i4", string.pack("<f", x))) end
    for begin = 0, #logits - 1, PART do
      local order, most, sum, at = {}, -math.huge, 0, begin // PART * WORDS
      for i = begin, math.min(begin + PART, #logits) - 1 do
        order[#order + 1], most = i, math.max(most, logits[i + 1])
      end
      table.sort(order, function(a, b)
        local x, other = logits[a + 1], logits[b + 1]
        return x > other or (x == other and a < b)
      end)
      for _, i in ipairs(order) do sum = sum + math.exp(logits[i + 1] - most) end
      for i = 1, TOP do
        y[at + i] = order[i] or -1
        y[at + TOP + i] = bits(order[i] and logits[order[i] + 1] or 0)
      end
      y[at + WORDS - 1], y[at + WORDS] = bits(most), bits(sum)
    end
  end,
}
