-- gen/ops/causal_conv.lua -- y[t] = silu(sum over j of weight[j] x[t - taps + 1 + j]), each column
-- by itself, along a sequence's tokens. The state keeps the last taps - 1 rows of x between steps
-- (zero before the first token).   Gu and Dao 2023, arXiv:2312.00752 (Mamba)
--
-- In place: whoever walks a column of a sequence has the rows before in registers.

local op = require "gen.op"

return op.define "causal_conv" {
  -- x (tokens, d), weight (d, taps) or as checkpoints hold it (d, 1, taps), state (taps - 1, d)
  inputs = { "x", "weight", "state" },
  takes = { state = "state" },
  reads = { "sequence_begin" },
  cuda = { kernels = 1 },
  state = "state",
  in_place = "x",
  strided = { "x" },

  shape = function(x, weight, state)
    op.check(#x == 2, "x must be (tokens, d), got %s", op.shape_text(x))
    local d, taps = x[2], weight[#weight]:value()
    op.check((#weight == 2 or #weight == 3 and weight[2]:value() == 1) and weight[1] == d,
      "weight must be (%s, taps) or (%s, 1, taps), got %s", d, d, op.shape_text(weight))
    op.check(op.same_shape(state, { taps - 1, d }),
      "the state must be (%d, %s), got %s", taps - 1, d, op.shape_text(state))
    return x
  end,

  bytes = function(x, weight, state, y)
    return x.bytes + weight.bytes + 2 * state.bytes + y.bytes
  end,

  -- One column of one sequence: x and y are lists over its tokens, state its taps - 1 values
  -- before, oldest first; it is changed.
  reference = function(y, x, weight, state)
    local taps = #weight
    for t = 1, #x do
      state[taps] = x[t]
      local sum = 0
      for j = 1, taps do sum = sum + weight[j] * state[j] end
      y[t] = sum / (1 + math.exp(-sum))
      table.remove(state, 1)
    end
  end,
}
