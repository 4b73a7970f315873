-- gen/ops/head_norm.lua -- In each head of a row, y = x / rms(x) * weight, one weight for all
-- heads; without a weight, y = x / rms(x).   Henry et al. 2020, arXiv:2010.04245

local launch = require "gen.launch"
local op = require "gen.op"

return op.define "head_norm" {
  inputs = { "x", "weight?" }, -- x (rows, n_heads * d_head), weight (d_head)
  attrs  = {
    eps = "number",     -- added to the mean square, under the root
    d_head = "number?", -- without a weight, and where x's width isn't n_heads * d_head
    offset = "number?", -- y = x / rms(x) * (offset + weight)
  },
  around = function(attrs) return { weight = 1 - (attrs.offset or 0) } end,
  strided = { "x" },
  may_overwrite = { "x" },
  partition = "rows",

  shape = function(x, weight, attrs)
    op.check(#x == 2, "x must be (rows, n_heads * d_head), got %s", op.shape_text(x))
    op.check(not weight or #weight == 1, "weight must be (d_head), got %s",
      weight and op.shape_text(weight))
    op.check(weight or not attrs.offset, "offset belongs to a weight: there is none")
    local n_heads, d_head = op.heads(x[2], weight and weight[1] or attrs.d_head)
    op.check(not attrs.d_head or attrs.d_head == d_head, "weight has %d dims, d_head is %s",
      d_head, tostring(attrs.d_head))
    attrs.n_heads, attrs.d_head = n_heads, d_head
    return x
  end,

  bytes = function(x, weight, y) return x.bytes + (weight and weight.bytes or 0) + y.bytes end,

  kernel = function(node)
    local d, offset = node.dim_name(node.attrs.d_head, "d_head"), node.attrs.offset or 0
    local weight = node.inputs.weight ~= nil
    local args = {
      "y", "y_stride", "x", "x_stride", node.dim_name(node.attrs.n_heads, "n_heads"), "rows",
    }
    if weight then table.insert(args, 5, "weight") end
    return {
      template = "cpu/head_norm.c",
      name = ("head_norm%s_%s"):format(
        not weight and "_plain" or offset ~= 0 and "_offset" or "", d:lower()),
      params = { d = d, eps = node.attrs.eps, weight = weight, offset = offset },
      args = args,
    }
  end,

  cuda = function(node)
    local weight, offset = node.inputs.weight, node.attrs.offset or 0
    local d = node.dim_name(node.attrs.d_head, "d_head")
    local args = {
      "y", "y_stride", "x", "x_stride", "n_heads=" .. node.dim_name(node.attrs.n_heads, "n_heads"),
      "rows",
    }
    if weight then table.insert(args, 5, "weight") end
    return launch.one(node, {
      template = "cuda/head_norm.cu", width = d, rows = { "x" },
      name = "head_norm" .. (not weight and "_plain" or offset ~= 0 and "_offset" or ""),
      params = {
        d = d, per_lane = (node.attrs.d_head + 31) // 32, eps = node.attrs.eps,
        weight = weight ~= nil, offset = offset,
      },
      args = args, blocks = { "(n_rows * n_heads + 3) / 4" }, threads = 128,
    })
  end,

  -- One head of one row.
  reference = function(y, x, weight, attrs)
    local sum_sq = 0
    for i = 1, #x do sum_sq = sum_sq + x[i] * x[i] end
    local scale = 1 / math.sqrt(sum_sq / #x + attrs.eps)
    for i = 1, #x do
      y[i] = x[i] * scale * (weight and (attrs.offset or 0) + weight[i] or 1)
    end
  end,
}
