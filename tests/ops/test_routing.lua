-- tests/ops/test_routing.lua -- Which experts a token gets, whose turn each choice is, and what
-- comes of them: against the references in Lua, on one thread and on three.

local spec = require "tests.support.spec"
local harness = require "tests.ops.harness"
local rows = require "tests.ops.rows"

local N, K = 9, 4 -- experts, and those of a token
local N_TOKENS = rows.N_ROWS
local N_CHOICES = N_TOKENS * K

local function reference(op_name, ...)
  local y = {}
  require("gen.ops." .. op_name).reference(y, ...)
  return y
end

local function same(found, expected)
  spec.equal(table.concat(found, " "), table.concat(expected, " "))
end

-- Row after row, every choice.
local function chosen(logits)
  local list = {}
  for _, row in ipairs(logits) do
    table.move(reference("top_k", row, { k = K }), 1, K, #list + 1, list)
  end
  return list
end

local experts_node = { dims = { "tokens", K } }
local count = { n_tokens = tostring(N_TOKENS) }

for _, family in ipairs(harness.here()) do
  local function it(name, run) spec(family.name .. ": " .. name, run) end

  local function top(logits)
    return rows.run(family, {
      op = "top_k", d = K, data = { logits = rows.flat(logits) },
      node = { inputs = { logits = { dims = { "tokens", N } } }, attrs = { k = K }, out = "i32" },
    })
  end

  it("top_k takes the largest, and of equal ones the first", function()
    local logits = rows.matrix(N_TOKENS, N)
    logits[2] = { 1, 3, 3, 2, 3, 1, 3, 3, 0 }
    logits[3] = { -1, -2, -3, -4, -5, -6, -7, -8, -9 }
    for i, row in ipairs(top(logits)) do same(row, reference("top_k", logits[i], { k = K })) end
  end)

  it("top_k gives columns that there are, whatever the logits", function()
    local nan = 0 / 0
    local logits = rows.matrix(N_TOKENS, N)
    logits[1] = { nan, nan, nan, nan, nan, nan, nan, nan, nan }
    logits[2] = { 1, nan, 2, nan, 3, nan, 4, nan, 5 }
    for _, row in ipairs(top(logits)) do
      local seen = {}
      for _, column in ipairs(row) do
        spec.equal(column >= 0 and column < N and not seen[column], true)
        seen[column] = true
      end
    end
  end)

  it("route_weights are the softmax of the chosen, times their scales", function()
    local logits, scale = rows.matrix(N_TOKENS, N), rows.matrix(1, N)[1]
    local experts = chosen(logits)
    for _, scaled in ipairs { false, true } do
      local found = rows.run(family, {
        op = "route_weights", d = K, ints = { experts = experts },
        data = { logits = rows.flat(logits), scale = scaled and scale or nil },
        node = { inputs = {
          logits = { dims = { "tokens", N } }, experts = experts_node,
          scale = scaled and { dims = { N } } or nil,
        } },
      })
      local expected = {}
      for i = 1, N_TOKENS do
        local of_row = table.move(experts, (i - 1) * K + 1, i * K, 1, {})
        expected[i] = reference("route_weights", logits[i], of_row, scaled and scale or nil)
      end
      rows.compare(found, expected)
    end
  end)

  it("expert_begin and expert_rows put choices in the experts' order", function()
    local experts = chosen(rows.matrix(N_TOKENS, N))
    local begin = rows.run(family, {
      op = "expert_begin", d = N + 1, n_rows = 1, ints = { experts = experts }, values = count,
      node = { inputs = { experts = experts_node }, attrs = { n_experts = N }, out = "i32" },
    })[1]
    same(begin, reference("expert_begin", experts, { n_experts = N }))

    local order = rows.run(family, {
      op = "expert_rows", d = N_CHOICES, n_rows = 1, ints = { experts = experts, begin = begin },
      values = count,
      node = { inputs = { experts = experts_node, begin = { dims = { N + 1 } } }, out = "i32" },
    })[1]
    same(order, reference("expert_rows", experts, begin))
  end)

  it("experts_sum adds a token's rows in the order of their slots", function()
    local x, weights = rows.matrix(N_CHOICES, 40), rows.matrix(N_TOKENS, K)
    local found = rows.run(family, {
      op = "experts_sum", d = 40, data = { x = rows.flat(x), weights = rows.flat(weights) },
      node = { inputs = { x = { dims = { "tokens", 40 } }, weights = experts_node } },
    })
    local expected = {}
    for i = 1, N_TOKENS do
      expected[i] = reference("experts_sum", table.move(x, (i - 1) * K + 1, i * K, 1, {}), weights[i])
    end
    rows.compare(found, expected)
  end)
end

harness.done()
