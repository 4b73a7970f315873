-- gen/ops/add_vector.lua -- y = x + weight, the same vector in every row: a bias.

local launch = require "gen.launch"
local op = require "gen.op"

return op.define "add_vector" {
  inputs = { "x", "weight" }, -- x (rows, d), weight (d)
  in_place = "x",
  partition = "rows",

  shape = function(x, weight)
    local d = x[#x]
    op.check(#weight == 1 and weight[1] == d, "weight must be (%s), got %s", d,
      op.shape_text(weight))
    return x
  end,

  bytes = function(x, weight, y) return x.bytes + weight.bytes + y.bytes end,

  kernel = function(node)
    local d = node.dim_name(node.inputs.x.dims[2])
    return {
      template = "cpu/add_vector.c",
      name = "add_vector_" .. d:lower(),
      params = { d = d },
      args = { "y", "weight", "rows" },
    }
  end,

  cuda = function(node) return launch.elementwise(node, "add_vector", { vectors = { "weight" } }) end,

  reference = function(y, x, weight)
    for i = 1, #x do y[i] = x[i] + weight[i] end
  end,
}
