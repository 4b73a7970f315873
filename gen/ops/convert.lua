-- gen/ops/convert.lua -- A row in the format that a weight's format wants to read:
-- gen/formats/act_*.lua. passes/lower.lua puts it in, passes/fuse_convert.lua into the row's maker.

local launch = require "gen.launch"
local op = require "gen.op"

return op.define "convert" {
  inputs = { "x" }, -- (rows, d)
  internal = true,
  emit   = { cpu = "cpu/convert.c" },
  out    = { "bf16", "q8", "q8x2" },
  partition = "rows",

  shape = function(x) return x end,

  bytes = function(x, y) return x.bytes + y.bytes end,

  kernel = function(node, family)
    local d = node.dim_name(node.inputs.x.dims[2])
    return {
      template = "cpu/convert.c",
      name = ("convert_%s_%s"):format(d:lower(), node.out),
      params = { d = d, out = node.out, cpu = family.cpu },
      args = { "y", "x", "rows" },
    }
  end,

  cuda = function(node)
    if node.out ~= "bf16" then return { kernels = 1 } end
    return launch.elementwise(node, "copy", { name = "convert" })
  end,

  reference = function(y, x)
    for i = 1, #x do y[i] = x[i] end
  end,
}
