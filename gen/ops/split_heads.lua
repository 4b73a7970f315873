-- gen/ops/split_heads.lua -- The part-th of `of` equal parts of each head: where one product gives
-- a head's query and then its gate, part 1 of 2 is the queries of all heads, side by side.

local op = require "gen.op"
local size = require "gen.size"

return op.define "split_heads" {
  inputs = { "x" }, -- x (rows, n_heads * of * d_head); y (rows, n_heads * d_head)
  attrs  = { part = "count", of = "count", d_head = "count" }, -- part from 1
  cuda = { kernels = 1 },
  strided = { "x" },
  partition = "rows",

  shape = function(x, attrs)
    op.check(#x == 2, "x must be (rows, n_heads * %d * d_head), got %s", attrs.of,
      op.shape_text(x))
    op.check(attrs.part >= 1 and attrs.part <= attrs.of, "part must be from 1 to %d, got %d",
      attrs.of, attrs.part)
    local n_heads = op.heads(x[2], attrs.of * attrs.d_head)
    return { x[1], size.of(n_heads) * attrs.d_head }
  end,

  bytes = function(_, y) return 2 * y.bytes end,

  -- One row.
  reference = function(y, x, attrs)
    local d = attrs.d_head
    for head = 0, #x // (attrs.of * d) - 1 do
      local from = (head * attrs.of + attrs.part - 1) * d
      for i = 1, d do y[head * d + i] = x[from + i] end
    end
  end,
}
