-- gen/ops/concat.lua -- y = [x, other]: the columns of both, side by side.

local launch = require "gen.launch"
local op = require "gen.op"

return op.define "concat" {
  inputs = { "x", "other" }, -- x (rows, a), other (rows, b); y (rows, a + b)
  partition = "rows",

  shape = function(x, other)
    op.check(#x == 2 and #other == 2 and x[1] == other[1],
      "both must have the same rows, got %s and %s", op.shape_text(x), op.shape_text(other))
    return { x[1], x[2] + other[2] }
  end,

  bytes = function(x, other, y) return x.bytes + other.bytes + y.bytes end,

  cuda = function(node)
    local n, n_other = node.inputs.x.dims[2], node.inputs.other.dims[2]
    local a, b = node.dim_name(n), node.dim_name(n_other)
    return launch.columns(node, n + n_other, {
      template = "cuda/concat.cu", name = "concat_" .. a:lower(), width = b, rows = { "x", "other" },
      params = { a = a, b = b }, args = { "y", "x", "other", "rows" },
    })
  end,

  -- One row.
  reference = function(y, x, other)
    for i = 1, #x do y[i] = x[i] end
    for i = 1, #other do y[#x + i] = other[i] end
  end,
}
