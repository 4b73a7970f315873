-- gen/ops/relative_attention.lua -- Attention of each frame to itself and the frames before it, as
-- many as `distances` has rows, within its item:
--   y = softmax(cap * tanh((q k' + q distances') / cap)) v
-- Row d of `distances` belongs to the key d frames before the query. Dai et al. 2019,
-- arXiv:1901.02860, appendix B; transformers' modeling_gemma4.py computes the same by chunks.

local op = require "gen.op"

return op.define "relative_attention" {
  -- q, k, v (rows, n_heads * d_head), distances (n, n_heads * d_head), frames (a multiple of
  -- rows): the number of each frame in its item; gen/ops/audio_conv.lua.
  inputs = { "q", "k", "v", "distances", "frames" },
  attrs  = { cap = "number", d_head = "number?" },
  cuda   = { kernels = 1 }, -- a block takes adjacent queries of one head; all keys fit beside them
  takes = { frames = "i32" },
  strided = { "q", "k", "v" },
  gathers = { "k", "v", "distances" },

  shape = function(q, k, v, distances, frames, attrs)
    op.check(#q == 2 and op.same_shape(q, k) and op.same_shape(q, v),
      "q, k and v must have one shape, got %s, %s and %s", op.shape_text(q), op.shape_text(k),
      op.shape_text(v))
    op.check(#distances == 2 and distances[2] == q[2] and not distances[1].extent,
      "distances must be (n, %s), got %s", q[2], op.shape_text(distances))
    local all, rows = #frames == 1 and frames[1]:multiple(), q[1]:multiple()
    op.check(all and rows and all % rows == 0 and frames[1].extent == q[1].extent,
      "frames must be a multiple of %s, got %s", q[1], op.shape_text(frames))
    attrs.n_heads, attrs.d_head = op.heads(q[2], attrs.d_head)
    attrs.stride = all // rows
    return q
  end,

  bytes = function(q, k, v, distances, frames, y)
    return q.bytes + k.bytes + v.bytes + distances.bytes + frames.bytes + y.bytes
  end,

  -- One head of one query; keys[d + 1] and values[d + 1] lie d frames before it.
  reference = function(y, q, keys, values, distances, attrs)
    local n, max, sum, score = math.min(#keys, #distances), -math.huge, 0, {}
    for j = 1, n do
      local dot = 0
      for i = 1, #q do dot = dot + q[i] * (keys[j][i] + distances[j][i]) end
      local e = math.exp(2 * dot / attrs.cap)
      score[j] = attrs.cap * (1 - 2 / (e + 1))
      max = math.max(max, score[j])
    end
    for j = 1, n do
      score[j] = math.exp(score[j] - max)
      sum = sum + score[j]
    end
    for i = 1, #q do
      local acc = 0
      for j = 1, n do acc = acc + score[j] * values[j][i] end
      y[i] = acc / sum
    end
  end,
}
