-- gen/ops/layer_columns.lua -- This layer's columns of what was computed for all layers at once:
-- layer l of (rows, n_layers * width) owns columns l * width up to (l + 1) * width.

local launch = require "gen.launch"
local op = require "gen.op"

return op.define "layer_columns" {
  inputs = { "x" }, -- (rows, n_layers * width)
  attrs  = { width = "count" },
  partition = "rows",

  shape = function(x, attrs)
    op.check(#x == 2, "x must be (rows, n_layers * width), got %s", op.shape_text(x))
    op.heads(x[2], attrs.width) -- refuses what isn't a multiple
    return { x[1], attrs.width }
  end,

  bytes = function(_, y) return 2 * y.bytes end,

  kernel = function(node)
    local d = node.dim_name(node.inputs.x.dims[2])
    local width = node.dim_name(node.attrs.width)
    return {
      template = "cpu/layer_columns.c",
      name = "layer_columns_" .. width:lower(),
      params = { d = d, width = width },
      args = { "y", "x", "layer", "rows" },
    }
  end,

  cuda = function(node)
    local width = node.dim_name(node.attrs.width)
    return launch.columns(node, node.attrs.width, {
      template = "cuda/layer_columns.cu", name = "layer_columns", width = width, rows = { "x" },
      params = { d = node.dim_name(node.inputs.x.dims[2]), width = width },
      args = { "y", "x", "layer", "rows" },
    })
  end,

  -- One row; layers count from 0.
  reference = function(y, x, attrs, layer)
    for i = 1, attrs.width do y[i] = x[layer * attrs.width + i] end
  end,
}
