-- gen/ops/rows.lua -- y = x[index]: the rows that are wanted. It closes a program's phase:
-- what follows has the index's extent.

local launch = require "gen.launch"
local op = require "gen.op"

return op.define "rows" {
  inputs = { "x", "index" }, -- x (rows, d), index (outputs)
  emit   = { cpu = "cpu/rows.c" },
  takes = { index = "i32" },
  partition = "rows",
  gathers = { "x" },

  shape = function(x, index)
    op.check(#x == 2, "x must be (rows, d), got %s", op.shape_text(x))
    op.check(#index == 1, "index must be (outputs), got %s", op.shape_text(index))
    return { index[1], x[2] }
  end,

  bytes = function(_, index, y) return index.bytes + 2 * y.bytes end,

  kernel = function(node)
    local d = node.dim_name(node.inputs.x.dims[2])
    return {
      template = "cpu/rows.c",
      name = "rows_" .. d:lower(),
      params = { d = d },
      args = { "y", "x", "index", "rows" },
    }
  end,

  cuda = function(node)
    local n = node.inputs.x.dims[2]
    return launch.columns(node, n, {
      template = "cuda/rows.cu", name = "rows", width = node.dim_name(n), rows = { "x" },
      params = { d = node.dim_name(n) }, args = { "y", "x", "index", "rows" },
    })
  end,

  reference = function(y, x, index)
    for i = 1, #x[index + 1] do y[i] = x[index + 1][i] end
  end,
}
