-- gen/ops/expert_begin.lua -- Choices ordered by expert: those of expert e are begin[e] up to
-- begin[e + 1]. Counts and their sums; gen/ops/expert_rows.lua says which they are.

local op = require "gen.op"

return op.define "expert_begin" {
  inputs = { "experts" }, -- (rows, k), from gen/ops/top_k.lua
  attrs  = { n_experts = "count" },
  takes = { experts = "i32" },
  result_dtype = "i32",

  shape = function(experts, attrs)
    op.check(#experts == 2, "experts must be (rows, k), got %s", op.shape_text(experts))
    return { attrs.n_experts + 1 }
  end,

  bytes = function(experts, y) return experts.bytes + y.bytes end,

  kernel = function(node)
    local extent, k = table.unpack(node.inputs.experts.dims)
    local n = node.dim_name(node.attrs.n_experts, "n_experts")
    return {
      template = "cpu/expert_begin.c",
      name = "expert_begin_" .. n:lower(),
      params = { n = n, k = node.dim_name(k, "n_active_experts") },
      args = { "y", "experts", "n_" .. extent },
    }
  end,

  cuda = function(node)
    local extent, k = table.unpack(node.inputs.experts.dims)
    local n = node.dim_name(node.attrs.n_experts, "n_experts")
    return { launches = { {
      template = "cuda/expert_begin.cu", name = "expert_begin_" .. n:lower(),
      params = { n = n, k = node.dim_name(k, "n_active_experts") },
      args = { "y", "experts", "n_" .. extent }, blocks = { n .. " + 1" }, threads = 256,
    } } }
  end,

  -- experts: every choice, token after token, from 0.
  reference = function(y, experts, attrs)
    for e = 0, attrs.n_experts do y[e + 1] = 0 end
    for _, expert in ipairs(experts) do y[expert + 2] = y[expert + 2] + 1 end
    for e = 1, attrs.n_experts do y[e + 1] = y[e + 1] + y[e] end
  end,
}
