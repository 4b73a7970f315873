-- gen/ops/pool.lua -- y = scale * the mean of `size` adjacent rows. What belongs together lies
-- together: preprocessing orders an image's patches by the square they are pooled in.

local launch = require "gen.launch"
local op = require "gen.op"
local size = require "gen.size"

return op.define "pool" {
  inputs = { "x" }, -- (size * rows, d)
  attrs  = { size = "count", scale = "number?" },
  wide = true, -- Gemma's scale and what is subtracted next want more than 8 bits
  gathers = { "x" },
  partition = "rows",

  shape = function(x, attrs)
    local rows = #x == 2 and x[1]:multiple()
    op.check(rows and rows % attrs.size == 0, "x must be (%d * rows, d), got %s", attrs.size,
      op.shape_text(x))
    return { size.extent(x[1].extent) * (rows // attrs.size), x[2] }
  end,

  bytes = function(x, y) return x.bytes + y.bytes end,

  kernel = function(node)
    local d, n = node.dim_name(node.inputs.x.dims[2]), math.tointeger(node.attrs.size)
    return {
      template = "cpu/pool.c",
      name = ("pool_%d_%s"):format(n, d:lower()),
      params = { d = d, size = n, scale = (node.attrs.scale or 1) / n },
      args = { "y", "x", "rows" },
    }
  end,

  cuda = function(node)
    local n, many = node.inputs.x.dims[2], math.tointeger(node.attrs.size)
    return launch.columns(node, n, {
      template = "cuda/pool.cu", name = "pool_" .. many, width = node.dim_name(n), rows = { "x" },
      params = { d = node.dim_name(n), size = many, scale = (node.attrs.scale or 1) / many },
      args = { "y", "x", "rows" },
    })
  end,

  -- One row of y from its rows of x.
  reference = function(y, rows, attrs)
    for i = 1, #rows[1] do
      local sum = 0
      for j = 1, #rows do sum = sum + rows[j][i] end
      y[i] = sum / #rows * (attrs.scale or 1)
    end
  end,
}
