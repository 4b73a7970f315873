-- gen/ops/rms_norm.lua -- y = x / rms(x) * weight, row by row; without a weight, y = x / rms(x).
-- Zhang and Sennrich 2019, arXiv:1910.07467

local launch = require "gen.launch"
local op = require "gen.op"

return op.define "rms_norm" {
  inputs = { "x", "weight?" }, -- x (rows, d), weight (d)
  attrs  = {
    eps = "number",     -- added to the mean square, under the root
    offset = "number?", -- y = x / rms(x) * (offset + weight): files that hold 1 less
  },
  emit   = { cpu = "cpu/rms_norm.c" },
  out    = { "f32", "bf16", "q8", "q8x2" },
  partition = "rows",
  around = function(attrs) return { weight = 1 - (attrs.offset or 0) } end,

  shape = function(x, weight, attrs)
    local d = x[#x]
    op.check(not weight or #weight == 1 and weight[1] == d,
             "weight must be (%s), got %s", d, weight and op.shape_text(weight))
    op.check(weight or not attrs.offset, "offset belongs to a weight: there is none")
    op.check(attrs.eps >= 0, "eps must not be negative, got %s", tostring(attrs.eps))
    return x
  end,

  hyperparameters = function(_, _, attrs) return { eps = attrs.eps } end,

  bytes = function(x, weight, y) return x.bytes + (weight and weight.bytes or 0) + y.bytes end,

  kernel = function(node, family)
    local d, offset = node.dim_name(node.inputs.x.dims[2]), node.attrs.offset or 0
    local kind = not node.inputs.weight and "_plain" or offset ~= 0 and "_offset" or ""
    return {
      template = "cpu/rms_norm.c",
      name = ("rms_norm%s_%s_%s"):format(kind, d:lower(), node.out),
      params = {
        d = d, eps = node.attrs.eps, out = node.out, cpu = family.cpu,
        weight = node.inputs.weight ~= nil, offset = offset,
      },
      args = node.inputs.weight and { "y", "x", "weight", "rows" } or { "y", "x", "rows" },
    }
  end,

  cuda = function(node)
    local weight, offset = node.inputs.weight, node.attrs.offset or 0
    local d, n = node.dim_name(node.inputs.x.dims[2]), node.inputs.x.dims[2]
    local threads = launch.threads(n)
    return launch.one(node, {
      template = "cuda/rms_norm.cu", width = d, rows = { "x" },
      name = "rms_norm" .. (not weight and "_plain" or offset ~= 0 and "_offset" or ""),
      params = {
        d = d, per_thread = (n + threads - 1) // threads, threads = threads, eps = node.attrs.eps,
        weight = weight ~= nil, offset = offset,
      },
      args = weight and { "y", "x", "weight", "rows" } or { "y", "x", "rows" },
      blocks = { "n_rows" }, threads = threads,
    })
  end,

  -- The definition as plain as it can be, for one row: the oracle of every template.
  reference = function(y, x, weight, attrs)
    local sum_sq = 0
    for i = 1, #x do sum_sq = sum_sq + x[i] * x[i] end
    local scale = 1 / math.sqrt(sum_sq / #x + attrs.eps)
    for i = 1, #x do
      y[i] = x[i] * scale * (weight and (attrs.offset or 0) + weight[i] or 1)
    end
  end,
}
