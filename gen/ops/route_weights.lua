-- gen/ops/route_weights.lua -- What each chosen expert counts for: the softmax of all logits at
-- the chosen ones, divided by their sum; that is the softmax of the chosen logits alone. With
-- `scale`, times the expert's own.   Shazeer et al. 2017, arXiv:1701.06538

local launch = require "gen.launch"
local op = require "gen.op"

return op.define "route_weights" {
  inputs = { "logits", "experts", "scale?" }, -- (rows, n_experts), (rows, k), (n_experts)
  around = { scale = 1 },
  takes = { experts = "i32" },
  wide = true,
  partition = "rows",

  shape = function(logits, experts, scale)
    op.check(#logits == 2, "logits must be (rows, n_experts), got %s", op.shape_text(logits))
    op.check(#experts == 2 and experts[1] == logits[1], "experts must be (%s, k), got %s",
      logits[1], op.shape_text(experts))
    op.check(not scale or op.same_shape(scale, { logits[2] }), "scale must be (%s), got %s",
      logits[2], scale and op.shape_text(scale))
    return experts
  end,

  bytes = function(_, experts, _, y) return experts.bytes + 2 * y.bytes end,

  kernel = function(node)
    local n = node.dim_name(node.inputs.logits.dims[2], "n_experts")
    local scaled = node.inputs.scale ~= nil
    return {
      template = "cpu/route_weights.c",
      name = ("route_weights%s_%s"):format(scaled and "_scaled" or "", n:lower()),
      params = {
        n = n, k = node.dim_name(node.inputs.experts.dims[2], "n_active_experts"), scaled = scaled,
      },
      args = scaled and { "y", "logits", "experts", "scale", "rows" }
        or { "y", "logits", "experts", "rows" },
    }
  end,

  cuda = function(node)
    local n = node.dim_name(node.inputs.logits.dims[2], "n_experts")
    local scaled = node.inputs.scale ~= nil
    return launch.one(node, {
      template = "cuda/route_weights.cu", width = n, rows = { "logits" },
      name = scaled and "route_weights_scaled" or "route_weights",
      params = {
        n = n, k = node.dim_name(node.inputs.experts.dims[2], "n_active_experts"), scaled = scaled,
      },
      args = scaled and { "y", "logits", "experts", "scale", "rows" }
        or { "y", "logits", "experts", "rows" },
      blocks = { "(n_rows + 3) / 4" }, threads = 128,
    })
  end,

  -- One row; experts from 0.
  reference = function(y, logits, experts, scale)
    local max, sum = -math.huge, 0
    for i = 1, #experts do max = math.max(max, logits[experts[i] + 1]) end
    for i = 1, #experts do
      y[i] = math.exp(logits[experts[i] + 1] - max)
      sum = sum + y[i]
    end
    for i = 1, #experts do y[i] = y[i] / sum * (scale and scale[experts[i] + 1] or 1) end
  end,
}
