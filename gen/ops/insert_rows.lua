-- gen/ops/insert_rows.lua -- Soft tokens take their places: row i becomes table[index[i]], and
-- stays where index[i] is negative.

local launch = require "gen.launch"
local op = require "gen.op"

return op.define "insert_rows" {
  inputs = { "x", "table", "index" }, -- x (rows, d), table (n, d), index (rows)
  takes = { index = "i32" },
  in_place = "x",
  partition = "rows",

  shape = function(x, table, index)
    op.check(#x == 2, "x must be (rows, d), got %s", op.shape_text(x))
    op.check(#table == 2 and table[2] == x[2], "table must be (n, %s), got %s", x[2],
      op.shape_text(table))
    op.check(#index == 1 and index[1] == x[1], "index must be (%s), got %s", x[1],
      op.shape_text(index))
    return x
  end,

  -- None to all of the rows.
  bytes = function(x, _, index, y)
    return { min = index.bytes, max = x.bytes + index.bytes + y.bytes }
  end,

  kernel = function(node)
    local d = node.dim_name(node.inputs.x.dims[2])
    return {
      template = "cpu/insert_rows.c",
      name = "insert_rows_" .. d:lower(),
      params = { d = d },
      args = { "y", "table", "index", "rows" },
    }
  end,

  cuda = function(node)
    local n = node.inputs.x.dims[2]
    return launch.columns(node, n, {
      template = "cuda/insert_rows.cu", name = "insert_rows", width = node.dim_name(n),
      rows = { "x", "table" }, params = { d = node.dim_name(n) },
      args = { "y", "table", "index", "rows" },
    })
  end,

  -- One row; index from 0.
  reference = function(y, x, table, index)
    for i = 1, #x do y[i] = index < 0 and x[i] or table[index + 1][i] end
  end,
}
