-- gen/ops/merge_rows.lua -- n adjacent rows as one, side by side: the same memory.

local op = require "gen.op"
local size = require "gen.size"

return op.define "merge_rows" {
  inputs = { "x" },           -- x (n * rows, d); y (rows, n * d)
  attrs  = { n = "count" },
  reshape = "x",

  shape = function(x, attrs)
    op.check(#x == 2, "x must be (rows, d), got %s", op.shape_text(x))
    local multiple = x[1]:multiple()
    op.check(multiple and attrs.n > 0 and multiple % attrs.n == 0,
      "rows must be a multiple of %d of an extent, got %s", attrs.n, x[1])
    return { size.extent(x[1].extent) * (multiple // attrs.n), x[2] * attrs.n }
  end,

  bytes = function() return 0 end,

  -- One row, of n.
  reference = function(y, x)
    for _, row in ipairs(x) do table.move(row, 1, #row, #y + 1, y) end
  end,
}
