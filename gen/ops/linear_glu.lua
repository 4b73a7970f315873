-- gen/ops/linear_glu.lua -- y = f(x gate') * (x up'), f silu or tanh's gelu: a gated unit in
-- one reading of x. Made by passes/fuse_glu.lua.   Shazeer 2020, arXiv:2002.05202
--
-- The tiles of gate and up lie in turn (tile_stride = 2 tile_bytes), so one thread reads one
-- stream and can write its 32 results as one group of q8.

local cuda_tiles = require "gen.cuda_tiles"
local op = require "gen.op"
local size = require "gen.size"
local tiles = require "gen.tiles"

local functions = {
  silu = function(x) return x / (1 + math.exp(-x)) end,
  gelu_tanh = function(x)
    local u = math.sqrt(2 / math.pi) * (x + 0.044715 * x ^ 3)
    return x / (1 + math.exp(-2 * u))
  end,
}

return op.define "linear_glu" {
  inputs = { "x", "weight", "up" }, -- x (rows, k), weight (the gate's) and up (n, k)
  internal = true,
  attrs  = { activation = "string" }, -- "silu" or "gelu_tanh"
  activation = "x",
  out = { "f32", "bf16", "q8" },
  partition = "tiles",

  shape = function(x, gate, up, attrs)
    local k = x[#x]
    for name, weight in pairs { gate = gate, up = up } do
      op.check(#weight == 2 and weight[2] == k,
        "%s must be (outputs, %s), got %s", name, k, op.shape_text(weight))
    end
    op.check(gate[1] == up[1], "gate and up must agree, got %s and %s",
      op.shape_text(gate), op.shape_text(up))
    op.check(functions[attrs.activation], "activation must be silu or gelu_tanh, got %s",
      attrs.activation)
    return { x[1], gate[1] }
  end,

  bytes = function(x, gate, up, y) return x.bytes + gate.bytes + up.bytes + y.bytes end,

  scratch = function(node) return tiles.scratch(node, 2) end,

  kernel = function(node, family)
    local template, tail, needs, params = tiles.kernel(node, family, "cpu/linear_glu.c", 2)
    local n = size.of(node.inputs.weight.dims[1]):value()
    local activation = node.attrs.activation
    params.activation = activation
    params.times = ("burin_%s_mul%s"):format(activation, family.cpu == "avx512" and "_x16" or "")
    params.y = require("gen.formats.act_" .. node.out)
    local args = { "y", "x", "weight", node.dim_name(n, "d_ff"), "rows" }
    if tiles.takes_scratch(node) then args[#args + 1] = "scratch" end
    return {
      template = template,
      name = ("linear_%s_%s_%s"):format(activation, tail, node.out),
      needs = needs, params = params, args = args,
    }
  end,

  cuda = function(node)
    local activation = node.attrs.activation
    local n = size.of(node.inputs.weight.dims[1]):value()
    return cuda_tiles.linear(node, {
      op = "linear_glu", x = "x", name = "linear_" .. activation, activation = activation,
      text = activation .. "(x gate') * (x up')",
      args = { "y", "x", "weight", "n_out=" .. node.dim_name(n, "d_ff"), "rows" },
    })
  end,

  -- One row.
  reference = function(y, x, gate, up, attrs)
    for out = 1, #gate do
      local g, u = 0, 0
      for i = 1, #x do
        g = g + x[i] * gate[out][i]
        u = u + x[i] * up[out][i]
      end
      y[out] = functions[attrs.activation](g) * u
    end
  end,
}
