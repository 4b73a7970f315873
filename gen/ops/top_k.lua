-- gen/ops/top_k.lua -- The columns of a row's k largest values, largest first; of equal ones the
-- lower column first.

local launch = require "gen.launch"
local op = require "gen.op"

return op.define "top_k" {
  inputs = { "logits" }, -- (rows, n)
  attrs  = { k = "count" },
  result_dtype = "i32",
  partition = "rows",

  shape = function(logits, attrs)
    op.check(#logits == 2, "logits must be (rows, n), got %s", op.shape_text(logits))
    op.check(attrs.k >= 1 and attrs.k <= logits[2]:value(), "k must be 1 ... %s, got %d",
      logits[2], attrs.k)
    return { logits[1], attrs.k }
  end,

  bytes = function(logits, y) return logits.bytes + y.bytes end,

  kernel = function(node)
    local n = node.dim_name(node.inputs.logits.dims[2], "n_experts")
    return {
      template = "cpu/top_k.c",
      name = ("top_%d_of_%s"):format(node.attrs.k, n:lower()),
      params = { n = n, k = node.dim_name(node.attrs.k, "n_active_experts") },
      args = { "y", "logits", "rows" },
    }
  end,

  cuda = function(node)
    local n = node.dim_name(node.inputs.logits.dims[2], "n_experts")
    return launch.one(node, {
      template = "cuda/top_k.cu", name = ("top_%d_of"):format(node.attrs.k), width = n,
      rows = { "logits" },
      params = { n = n, k = node.dim_name(node.attrs.k, "n_active_experts") },
      args = { "y", "logits", "rows" }, blocks = { "(n_rows + 3) / 4" }, threads = 128,
    })
  end,

  -- One row; columns from 0.
  reference = function(y, logits, attrs)
    local order = {}
    for i = 1, #logits do order[i] = i end
    table.sort(order, function(a, b)
      if logits[a] ~= logits[b] then return logits[a] > logits[b] end
      return a < b
    end)
    for i = 1, attrs.k do y[i] = order[i] - 1 end
  end,
}
