-- gen/ops/expert_rows.lua -- Choices ordered by expert, within one by number. Choice c is slot
-- c % k of token c / k: kernels find a token's row by it and write to row c, so nothing is moved.

local op = require "gen.op"

return op.define "expert_rows" {
  inputs = { "experts", "begin" }, -- (rows, k), and gen/ops/expert_begin.lua's (n_experts + 1)
  takes = { experts = "i32", begin = "i32" },
  result_dtype = "i32",

  shape = function(experts, begin)
    op.check(#experts == 2, "experts must be (rows, k), got %s", op.shape_text(experts))
    op.check(#begin == 1, "begin must be (n_experts + 1), got %s", op.shape_text(begin))
    return { experts[1] * experts[2] }
  end,

  bytes = function(experts, begin, y) return experts.bytes + begin.bytes + y.bytes end,

  kernel = function(node)
    local extent, k = table.unpack(node.inputs.experts.dims)
    local n = node.dim_name(node.inputs.begin.dims[1] - 1, "n_experts")
    return {
      template = "cpu/expert_rows.c",
      name = "expert_rows_" .. n:lower(),
      params = { n = n, k = node.dim_name(k, "n_active_experts") },
      args = { "y", "experts", "begin", "n_" .. extent },
    }
  end,

  cuda = function(node)
    local extent, k = table.unpack(node.inputs.experts.dims)
    local n = node.dim_name(node.inputs.begin.dims[1] - 1, "n_experts")
    return { launches = { {
      template = "cuda/expert_rows.cu", name = "expert_rows_" .. n:lower(),
      params = { n = n, k = node.dim_name(k, "n_active_experts") },
      args = { "y", "experts", "begin", "n_" .. extent }, blocks = { n }, threads = 256,
    } } }
  end,

  -- experts: every choice, token after token, from 0.
  reference = function(y, experts, begin)
    local next_of = {}
    for e = 1, #begin - 1 do next_of[e] = begin[e] end
    for c, expert in ipairs(experts) do
      y[next_of[expert + 1] + 1] = c - 1
      next_of[expert + 1] = next_of[expert + 1] + 1
    end
  end,
}
