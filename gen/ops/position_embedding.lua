-- gen/ops/position_embedding.lua -- x += the table's vector of its column x + that of its row y:
-- a learnt position in two axes. Two rows are gathered, none is multiplied.

local launch = require "gen.launch"
local op = require "gen.op"
local tiles = require "gen.tiles"

return op.define "position_embedding" {
  -- x (rows, d); weight (2, n, d) or (n, 2, d): of each axis n vectors; positions (rows, 2).
  inputs = { "x", "weight", "positions" },
  takes = { positions = "i32" },
  in_place = "x",
  partition = "rows",

  shape = function(x, weight, positions)
    local d = x[#x]
    op.check(op.same_shape(weight, { 2, weight[2], d }) or op.same_shape(weight, { weight[1], 2, d }),
      "weight must be (2, n, %s) or (n, 2, %s), got %s", d, d, op.shape_text(weight))
    op.check(op.same_shape(positions, { x[1], 2 }), "positions must be (%s, 2), got %s", x[1],
      op.shape_text(positions))
    return x
  end,

  bytes = function(x, _, positions, y) return 2 * x.bytes + positions.bytes + y.bytes end,

  kernel = function(node)
    local weight = node.inputs.weight
    local format = require("gen.formats." .. weight.format)
    local axis_first = weight.dims[1] == 2
    local n = node.dim_name(weight.dims[axis_first and 2 or 1], "n_positions")
    local d = node.dim_name(weight.dims[3])
    local gather = tiles.gather(format, d)
    return {
      template = "cpu/position_embedding.c",
      name = ("position_embedding_%s_%s"):format(format.name, d:lower()),
      needs = { gather },
      params = {
        d = d, n = n, axis_first = axis_first, gather = gather.name,
        tile_bytes = format.tile_bytes(weight.dims[3]),
      },
      args = { "y", "weight", "positions", "rows" },
    }
  end,

  cuda = function(node)
    local weight = node.inputs.weight
    local format, n = require("gen.formats." .. weight.format), weight.dims[3]
    if not format.cuda then return { kernels = 1 } end
    local axis_first = weight.dims[1] == 2
    local d, read = node.dim_name(n), tiles.cuda_weight(format, n)
    return launch.columns(node, n, {
      template = "cuda/position_embedding.cu", name = "position_embedding_" .. format.name,
      width = d, rows = { "x" }, needs = { read },
      params = {
        d = d, n = node.dim_name(weight.dims[axis_first and 2 or 1], "n_positions"),
        axis_first = axis_first, weight = read.name, tile_bytes = format.tile_bytes(n),
      },
      args = { "y", "weight", "positions", "rows" },
    })
  end,

  -- One row; of_x and of_y are the vectors of each axis, positions from 0.
  reference = function(y, x, of_x, of_y, position)
    for i = 1, #x do y[i] = x[i] + of_x[position[1] + 1][i] + of_y[position[2] + 1][i] end
  end,
}
