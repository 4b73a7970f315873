-- gen/ops/packed_attention.lua -- y = softmax(q k' * scale) v among the rows of one item, in both
-- directions; items lie one behind the other and don't see each other.
-- Vaswani et al. 2017, arXiv:1706.03762; Dao et al. 2022, arXiv:2205.14135 (one pass)

local op = require "gen.op"

return op.define "packed_attention" {
  -- q, k, v (rows, n_heads * d_head); item_begin: item i is rows item_begin[i] up to
  -- item_begin[i + 1], entries beyond the last item all rows there are.
  inputs = { "q", "k", "v", "item_begin" },
  attrs  = { d_head = "number?", scale = "number?" }, -- of the scores; 1 / sqrt(d_head) if left out
  -- A block takes a tile of one head's queries and finds its items in item_begin.
  cuda   = { kernels = 1 },
  takes = { item_begin = "i32" },
  strided = { "q", "k", "v" },
  gathers = { "k", "v" },

  shape = function(q, k, v, item_begin, attrs)
    op.check(#q == 2 and op.same_shape(q, k) and op.same_shape(q, v),
      "q, k and v must have one shape, got %s, %s and %s", op.shape_text(q), op.shape_text(k),
      op.shape_text(v))
    op.check(#item_begin == 1, "item_begin must be (items + 1), got %s", op.shape_text(item_begin))
    local n_heads, d_head = op.heads(q[2], attrs.d_head)
    attrs.n_heads, attrs.d_head = n_heads, d_head
    return q
  end,

  -- Keys and values are read once for each tile of queries: from once to rows / tile times.
  bytes = function(q, k, v, item_begin, y)
    return q.bytes + k.bytes + v.bytes + item_begin.bytes + y.bytes
  end,

  -- One head of one query; keys[j] and values[j] are its item's.
  reference = function(y, q, keys, values, attrs)
    local scale = attrs.scale or 1 / math.sqrt(#q)
    local max, sum, score = -math.huge, 0, {}
    for j, key in ipairs(keys) do
      local dot = 0
      for i = 1, #q do dot = dot + q[i] * key[i] end
      score[j] = dot * scale
      max = math.max(max, score[j])
    end
    for j = 1, #keys do
      score[j] = math.exp(score[j] - max)
      sum = sum + score[j]
    end
    for i = 1, #q do
      local acc = 0
      for j, value in ipairs(values) do acc = acc + score[j] * value[i] end
      y[i] = acc / sum
    end
  end,
}
