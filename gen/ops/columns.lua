-- gen/ops/columns.lua -- The part-th of `of` equal groups of x's columns, where they lie: queries,
-- keys and values of one product. Rows stay as far apart as x's.

local op = require "gen.op"

return op.define "columns" {
  inputs = { "x" },                             -- x (rows, of * d); y (rows, d)
  attrs  = { part = "count", of = "count" },  -- part from 1
  reshape = "x",

  shape = function(x, attrs)
    op.check(#x == 2, "x must be (rows, columns), got %s", op.shape_text(x))
    op.check(attrs.of > 0 and x[2]:value() % attrs.of == 0,
      "%s isn't a multiple of %d", x[2], attrs.of)
    op.check(attrs.part >= 1 and attrs.part <= attrs.of, "part must be from 1 to %d, got %d",
      attrs.of, attrs.part)
    attrs.column = (attrs.part - 1) * (x[2]:value() // attrs.of)
    return { x[1], x[2] / attrs.of }
  end,

  bytes = function() return 0 end,

  -- One row.
  reference = function(y, x, attrs)
    local d = #x // attrs.of
    for i = 1, d do y[i] = x[(attrs.part - 1) * d + i] end
  end,
}
