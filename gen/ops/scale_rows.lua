-- gen/ops/scale_rows.lua -- y = x * factor, each row by its own number.

local op = require "gen.op"

return op.define "scale_rows" {
  inputs = { "x", "factor" }, -- x (rows, d), factor (rows, 1)
  cuda = { kernels = 1 },
  in_place = "x",
  partition = "rows",

  shape = function(x, factor)
    op.check(op.same_shape(factor, { x[1], 1 }),
      "factor must be (%s, 1), got %s", x[1], op.shape_text(factor))
    return x
  end,

  bytes = function(x, factor, y) return x.bytes + factor.bytes + y.bytes end,

  -- One row.
  reference = function(y, x, factor)
    for i = 1, #x do y[i] = x[i] * factor[1] end
  end,
}
