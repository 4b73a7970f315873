-- gen/ops/copy.lua -- y = x. passes/in_place.lua puts it in where a value must come to lie in
-- another's place.

local launch = require "gen.launch"
local op = require "gen.op"

return op.define "copy" {
  inputs = { "x" },
  internal = true,
  emit   = { cpu = "cpu/elementwise.c" },
  partition = "rows",

  shape = function(x) return x end,

  bytes = function(x, y) return x.bytes + y.bytes end,

  kernel = function(node)
    local d = node.dim_name(node.inputs.x.dims[2])
    return {
      template = "cpu/elementwise.c",
      name = "copy_" .. d:lower(),
      params = { d = d, f = "copy", other = false },
      args = { "y", "x", "rows" },
    }
  end,

  cuda = function(node) return launch.elementwise(node, "copy") end,

  reference = function(y, x)
    for i = 1, #x do y[i] = x[i] end
  end,
}
