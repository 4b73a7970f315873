-- gen/ops/linear.lua -- y = x w', every row of x times every row of the weight; or y += x w',
-- where passes/fuse_add.lua has set the epilogue.

local cuda_tiles = require "gen.cuda_tiles"
local op = require "gen.op"
local size = require "gen.size"
local tiles = require "gen.tiles"

return op.define "linear" {
  inputs = { "x", "weight" }, -- x (rows, k), weight (n, k)
  attrs = { wide = "boolean?" }, -- the result in f32 in every family: what decides between others
  activation = "x",
  partition = "tiles",

  shape = function(x, weight)
    local k = x[#x]
    op.check(#x == 2, "x must be (rows, k), got %s", op.shape_text(x))
    op.check(#weight == 2 and weight[2] == k,
      "weight must be (outputs, %s), got %s", k, op.shape_text(weight))
    return { x[1], weight[1] }
  end,

  bytes = function(x, weight, y) return x.bytes + weight.bytes + y.bytes end,

  scratch = function(node) return tiles.scratch(node, 1) end,

  kernel = function(node, family)
    local adds = node.attrs.epilogue == "add"
    local template, tail, needs, params = tiles.kernel(node, family, "cpu/linear.c", 1)
    local n = size.of(node.inputs.weight.dims[1]):value()
    params.sign, params.put = adds and "+=" or "=", adds and "add" or "store"
    local args = { "y", "y_stride", "x", "weight", node.dim_name(n), "rows" }
    if tiles.takes_scratch(node) then args[#args + 1] = "scratch" end
    return {
      template = template, name = (adds and "linear_add_" or "linear_") .. tail,
      needs = needs, params = params, args = args,
    }
  end,

  cuda = function(node)
    local adds = node.attrs.epilogue == "add"
    local n = size.of(node.inputs.weight.dims[1]):value()
    return cuda_tiles.linear(node, {
      op = "linear", x = "x", name = adds and "linear_add" or "linear",
      text = adds and "y + x w'" or "x w'", strided = true, adds = adds, plain = true,
      args = { "y", "y_stride", "x", "weight", "n_out=" .. node.dim_name(n), "rows" },
    })
  end,

  -- One row.
  reference = function(y, x, weight)
    for out = 1, #weight do
      local sum = 0
      for i = 1, #x do sum = sum + x[i] * weight[out][i] end
      y[out] = sum
    end
  end,
}
