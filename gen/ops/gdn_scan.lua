-- gen/ops/gdn_scan.lua -- Gated DeltaNet: a memory S (d_key, d_value) for each value head that is
-- read by a query, forgets by alpha and writes by beta what it should have known of a key.
-- Yang, Kautz and Hatamizadeh 2024, arXiv:2412.06464
--
--   q = q / |q| / sqrt(d_key)    k = k / |k|        of the key head: adjacent value heads share one
--   alpha = exp(-exp(a_log) softplus(a + dt_bias))  beta = sigmoid(b)
--   S = alpha S    S = S + k (beta (v - S' k))'     y = S' q
--
-- Generated and draft tokens take that step. Prompt tokens are taken 64 at a time, from one
-- position that is a multiple of 64 to the next (a step may cut a prompt only there): Yang et al.
-- 2024, arXiv:2406.06484, section 3. With g = log alpha summed up from the chunk's begin and
-- D[i][j] = exp(g[i] - g[j]):
--
--   (I + tril(diag(beta) K K' D, -1)) [U W] = diag(beta) [V  diag(exp g) K]
--   N = U - W S    Y = diag(exp g) Q S + tril(Q K' D) N    S = exp(g[64]) S + (exp(g[64] - g) K)' N
--
-- One kernel, nothing in the arena: a block owns a sequence's value head and 32 columns of S. It
-- keeps in shared memory Q, K and W (64, 128) in bf16, both (64, 64) products in f32 and bf16, its
-- columns of V and N in bf16 and of S in f32: 96 of the 99 KiB that sm89 and sm120 have. The four
-- blocks of a head repeat the products of K: with all of it 2 % of the 27B model's arithmetic.

local op = require "gen.op"

local EPS = 1e-6 -- under the roots of |q| and |k|

return op.define "gdn_scan" {
  -- qkv (tokens, 2 * n_key_heads * d_key + n_heads * d_value): queries, keys, values;
  -- a, b (tokens, n_heads); a_log, dt_bias (n_heads); memory (n_heads, d_key, d_value)
  inputs = { "qkv", "a", "b", "a_log", "dt_bias", "memory" },
  takes = { memory = "state" },
  reads = { "positions", "sequence_begin", "is_prompt" },
  cuda = { kernels = 1 },
  around = { a_log = 1, dt_bias = 1 },
  quantum = 64,
  state = "state",
  strided = { "qkv", "a", "b" },

  shape = function(qkv, a, b, a_log, dt_bias, memory)
    op.check(#memory == 3, "memory must be (n_heads, d_key, d_value), got %s",
      op.shape_text(memory))
    local n_heads, d_key, d_value = memory[1]:value(), memory[2]:value(), memory[3]:value()
    for name, gate in pairs { a = a, b = b } do
      op.check(op.same_shape(gate, { qkv[1], n_heads }),
        "%s must be (%s, %d), got %s", name, qkv[1], n_heads, op.shape_text(gate))
    end
    for name, weight in pairs { a_log = a_log, dt_bias = dt_bias } do
      op.check(op.same_shape(weight, { n_heads }),
        "%s must be (%d), got %s", name, n_heads, op.shape_text(weight))
    end
    local keys = qkv[2]:value() - n_heads * d_value
    op.check(keys > 0 and keys % (2 * d_key) == 0 and n_heads % (keys // (2 * d_key)) == 0,
      "qkv must be queries and keys of %d and %d values of %d, got %s",
      d_key, n_heads, d_value, op.shape_text(qkv))
    return { qkv[1], memory[1] * memory[3] }
  end,

  bytes = function(qkv, a, b, a_log, dt_bias, memory, y)
    return qkv.bytes + a.bytes + b.bytes + a_log.bytes + dt_bias.bytes + 2 * memory.bytes + y.bytes
  end,

  -- One token of one value head, with its own a, b, a_log and dt_bias; memory[i][j] is changed.
  reference = function(y, q, k, v, a, b, a_log, dt_bias, memory)
    local function scale(x)
      local sum_sq = EPS
      for i = 1, #x do sum_sq = sum_sq + x[i] * x[i] end
      return 1 / math.sqrt(sum_sq)
    end
    local q_scale, k_scale = scale(q) / math.sqrt(#q), scale(k)
    local softplus = a + dt_bias > 20 and a + dt_bias or math.log(1 + math.exp(a + dt_bias))
    local alpha, beta = math.exp(-math.exp(a_log) * softplus), 1 / (1 + math.exp(-b))
    for j = 1, #v do
      local known = 0
      for i = 1, #k do
        memory[i][j] = alpha * memory[i][j]
        known = known + memory[i][j] * k[i] * k_scale
      end
      y[j] = 0
      for i = 1, #k do
        memory[i][j] = memory[i][j] + k[i] * k_scale * beta * (v[j] - known)
        y[j] = y[j] + memory[i][j] * q[i] * q_scale
      end
    end
  end,
}
