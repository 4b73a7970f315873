-- tests/gpu/test_experts.lua -- experts_glu and experts_down on a GPU: what the references say, and the
-- same bits from the kernels for few tokens and for many, whoever else chose an expert.

local experts_down = require "gen.ops.experts_down"
local experts_glu = require "gen.ops.experts_glu"
local harness = require "tests.gpu.harness"
local spec = require "tests.support.spec"
local weights = require "tests.gpu.weights"

local SLOTS = 3

-- Choices by expert and where each expert's begin: most tokens want the second, nobody the last.
local function chosen(n_tokens, n_experts)
  local of, rows, begin = {}, {}, { 0 }
  for choice = 0, n_tokens * SLOTS - 1 do
    local token, slot = choice // SLOTS, choice % SLOTS
    of[choice] = slot == 0 and 1 or (token * 5 + slot * 2) % (n_experts - 1)
  end
  for expert = 0, n_experts - 1 do
    for choice = 0, n_tokens * SLOTS - 1 do
      if of[choice] == expert then rows[#rows + 1] = choice end
    end
    begin[expert + 2] = #rows
  end
  return of, rows, begin
end

local function run(c, n_tokens, x, tiles)
  local op_name = c.activation and "experts_glu" or "experts_down"
  local n_choices = n_tokens * SLOTS
  local of, rows, begin = chosen(n_tokens, c.n_experts)
  local x_name = c.activation and "x" or "h"
  local out = harness.run {
    op = op_name,
    node = {
      inputs = {
        [x_name] = { dims = { "tokens", c.k } },
        weight = {
          dims = { c.n_experts, c.activation and 2 * c.n or c.n, c.k }, format = c.format,
        },
        rows = { dims = { "tokens" }, dtype = "i32" }, begin = { dims = { c.n_experts + 1 }, dtype = "i32" },
      },
      y = { dims = { "tokens", c.n }, dtype = c.dtype },
      attrs = { activation = c.activation, n_slots = SLOTS, n_choices = SLOTS },
    },
    args = {
      y = harness.result(c.dtype, n_choices * c.n), [x_name] = harness.bf16(x),
      weight = weights.bytes(tiles), rows = harness.i32(rows), begin = harness.i32(begin),
      n_tokens = n_tokens,
    },
  }
  return out, of
end

local configs = {
  { format = "bf16", k = 52, n = 40, n_experts = 35, dtype = "bf16", activation = "gelu_tanh" },
  { format = "q4_0", k = 96, n = 33, n_experts = 5, dtype = "f32", activation = "silu" },
  { format = "q8_0", k = 64, n = 136, n_experts = 6, dtype = "bf16" },
  { format = "f32", k = 24, n = 20, n_experts = 70, dtype = "f32" },
}

for _, c in ipairs(configs) do
  local glu = c.activation ~= nil
  local name = ("%s of %s weights"):format(glu and "experts_glu" or "experts_down", c.format)
  local tiles, matrices = {}, {}
  for expert = 1, c.n_experts do
    local own, _, rows = weights.matrix(c.format, c.n, c.k)
    if glu then
      local up, _, up_rows = weights.matrix(c.format, c.n, c.k)
      own = weights.in_turn(own, up)
      table.move(up_rows, 1, c.n, c.n + 1, rows)
    end
    table.move(own, 1, #own, #tiles + 1, tiles)
    matrices[expert] = rows
  end
  local N_TOKENS, FEW = 9, 2
  local x = harness.matrix(N_TOKENS * (glu and 1 or SLOTS), c.k)

  spec(name, function()
    local out, of = run(c, N_TOKENS, x, tiles)

    local expected = {}
    for choice = 0, N_TOKENS * SLOTS - 1 do
      local y, matrix = {}, matrices[of[choice] + 1]
      if glu then
        experts_glu.reference(y, x[choice // SLOTS + 1], matrix, c)
      else
        experts_down.reference(y, x[choice + 1], matrix)
      end
      expected[choice + 1] = y
    end
    harness.compare(out.y, expected, c.dtype)
  end)

  spec(name .. ": a token's bits don't depend on others", function()
    local all = run(c, N_TOKENS, x, tiles)
    local few_x = table.move(x, 1, FEW * (glu and 1 or SLOTS), 1, {})
    local few = run(c, FEW, few_x, tiles)

    spec.equal(few.raw.y == all.raw.y:sub(1, #few.raw.y), true)
  end)
end
