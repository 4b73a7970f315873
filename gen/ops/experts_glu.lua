-- gen/ops/experts_glu.lua -- h = f(x gate') * (x up') for each choice, by the chosen expert's
-- matrices: one grouped product.   Shazeer 2020, arXiv:2002.05202; Gale et al. 2022,
-- arXiv:2211.15841 (groups of any length, nothing dropped)

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

return op.define "experts_glu" {
  -- x (tokens, k), weight (n_experts, 2 n, k): of each expert n rows of the gate, then n of up;
  -- rows (choices) and begin (n_experts + 1): gen/ops/expert_rows.lua.
  inputs = { "x", "weight", "rows", "begin" },
  attrs  = { activation = "string" }, -- "silu" or "gelu_tanh"
  activation = "x",
  takes = { rows = "i32", begin = "i32" },
  gathers = { "x" },
  stacks = 2, -- of each expert two matrices: gate and up
  out = { "f32", "bf16", "q8" },
  partition = "tiles",

  shape = function(x, weight, rows, begin, attrs)
    local k = x[#x]
    op.check(#weight == 3 and weight[3] == k and weight[2]:value() % 2 == 0,
      "weight must be (n_experts, 2 n, %s), got %s", k, op.shape_text(weight))
    op.check(#rows == 1, "rows must be (choices), got %s", op.shape_text(rows))
    op.check(op.same_shape(begin, { weight[1] + 1 }), "begin must be (%s + 1), got %s", weight[1],
      op.shape_text(begin))
    op.check(functions[attrs.activation], "activation must be silu or gelu_tanh, got %s",
      attrs.activation)
    attrs.n_slots = rows[1]:multiple() // x[1]:multiple() -- choices a token
    attrs.n_choices = rows[1]:multiple() -- for each of its extent
    return { rows[1], size.of(weight[2]:value() // 2) }
  end,

  share = function(_, weight, rows) return rows[1]:multiple() / weight[1]:value() end,

  -- Of the experts, those of one token up to all.
  bytes = function(x, weight, rows, begin, y)
    local rest = x.bytes + rows.bytes + begin.bytes + y.bytes
    return { min = rest, max = rest + weight.bytes }
  end,

  scratch = function(node) return tiles.made_scratch(node, node.inputs.x.act, 2) end,

  kernel = function(node, family)
    return tiles.experts(node, family, {
      x = "x", slots = node.attrs.n_slots, activation = node.attrs.activation,
    })
  end,

  cuda = function(node)
    local activation, weight = node.attrs.activation, node.inputs.weight
    local n = size.of(weight.dims[2]):value() // 2
    local n_tokens = "n_" .. node.inputs.x.dims[1]
    return cuda_tiles.experts(node, {
      op = "experts_glu", x = "x", name = "experts_" .. activation, activation = activation,
      text = activation .. "(x gate') * (x up')", slots = node.attrs.n_slots,
      choices = node.attrs.n_choices, n_experts = size.of(weight.dims[1]):value(),
      n_tokens = n_tokens,
      args = { "y", "x", "weight", "rows", "begin", "n_out=" .. node.dim_name(n), n_tokens },
    })
  end,

  -- One choice: its token's x and its expert's matrix.
  reference = function(y, x, weight, attrs)
    local n = #weight // 2
    for out = 1, n do
      local gate, up = 0, 0
      for i = 1, #x do
        gate = gate + x[i] * weight[out][i]
        up = up + x[i] * weight[n + out][i]
      end
      y[out] = functions[attrs.activation](gate) * up
    end
  end,
}
