-- tests/gpu/test_routing.lua -- On a GPU: which experts a token gets, whose turn each choice is, and
-- what comes of them.

local spec = require "tests.support.spec"
local harness = require "tests.gpu.harness"

local N, K = 41, 4 -- experts, and those of a token
local N_TOKENS = 99 -- more choices than an expert's block takes at once
local N_CHOICES = N_TOKENS * K

local function reference(op_name, ...)
  local y = {}
  require("gen.ops." .. op_name).reference(y, ...)
  return y
end

local function same(found, expected) spec.equal(table.concat(found, " "), table.concat(expected, " ")) end

-- Row after row, every choice.
local function chosen(logits)
  local list = {}
  for _, row in ipairs(logits) do table.move(reference("top_k", row, { k = K }), 1, K, #list + 1, list) end
  return list
end

local function row_of(list, i, k) return table.move(list, (i - 1) * k + 1, i * k, 1, {}) end

local function top(logits, k, dtype)
  return harness.run({
    op = "top_k",
    node = {
      inputs = { logits = { dims = { "tokens", #logits[1] }, dtype = dtype } }, attrs = { k = k },
      y = { dtype = "i32" },
    },
    args = { logits = harness[dtype](logits), y = harness.result("i32", #logits * k), rows = #logits },
  }).y
end

spec("top_k takes the largest, and of equal ones the first", function()
  local logits = harness.matrix(6, N)
  for i = 1, N do
    logits[2][i], logits[3][i] = i * 5 % 3, -i
    logits[4][i] = -math.huge
  end
  logits[5][7], logits[5][9] = math.huge, math.huge
  for _, dtype in ipairs { "f32", "bf16" } do
    local found = top(logits, 8, dtype)
    for i, row in ipairs(logits) do same(row_of(found, i, 8), reference("top_k", row, { k = 8 })) end
  end
end)

spec("top_k gives columns that there are, whatever the logits", function()
  local logits = harness.matrix(3, 9)
  for i = 1, 9 do logits[1][i], logits[2][i] = 0 / 0, i % 2 == 0 and 0 / 0 or i end
  local found = top(logits, 9, "f32")
  for i = 1, 3 do
    local seen = {}
    for _, column in ipairs(row_of(found, i, 9)) do
      spec.equal(column >= 0 and column < 9 and not seen[column], true)
      seen[column] = true
    end
  end
end)

spec("route_weights are the softmax of the chosen, times their scales", function()
  local logits, scale = harness.matrix(6, N), harness.numbers(N)
  local experts = chosen(logits)
  for _, scaled in ipairs { false, true } do
    local found = harness.run {
      op = "route_weights",
      node = {
        inputs = {
          logits = { dims = { "tokens", N }, dtype = "f32" }, experts = { dims = { "tokens", K }, dtype = "i32" },
          scale = scaled and { dims = { N } } or nil,
        },
        y = { dtype = "f32" },
      },
      args = {
        logits = harness.f32(logits), experts = harness.i32(experts), scale = scaled and harness.f32(scale) or nil,
        y = harness.result("f32", 6 * K), rows = 6,
      },
    }
    local expected = {}
    for i, row in ipairs(logits) do
      expected[i] = reference("route_weights", row, row_of(experts, i, K), scaled and scale or nil)
    end
    harness.compare(found.y, expected, "f32")
  end
end)

spec("expert_begin and expert_rows put choices in the experts' order, as they came within one", function()
  local experts = chosen(harness.matrix(N_TOKENS, N))
  local node = { inputs = { experts = { dims = { "tokens", K }, dtype = "i32" } }, attrs = { n_experts = N } }
  node.y = { dtype = "i32" }
  local begin = harness.run({
    op = "expert_begin", node = node,
    args = { experts = harness.i32(experts), y = harness.result("i32", N + 1), n_tokens = N_TOKENS },
  }).y
  same(begin, reference("expert_begin", experts, { n_experts = N }))

  node.inputs.begin = { dims = { N + 1 }, dtype = "i32" }
  local order = harness.run({
    op = "expert_rows", node = node,
    args = {
      experts = harness.i32(experts), begin = harness.i32(begin), y = harness.result("i32", N_CHOICES),
      n_tokens = N_TOKENS,
    },
  }).y
  same(order, reference("expert_rows", experts, begin))
end)

spec("experts_sum adds a token's rows in the order of their slots", function()
  local x, weights = harness.matrix(6 * K, 300), harness.matrix(6, K)
  for _, dtype in ipairs { "bf16", "f32" } do
    local found = harness.run {
      op = "experts_sum",
      node = { inputs = {
        x = { dims = { "tokens", 300 }, dtype = dtype }, weights = { dims = { "tokens", K }, dtype = "f32" },
      } },
      args = {
        x = harness[dtype](x), weights = harness.f32(weights), y = harness.result(dtype, 6 * 300), rows = 6,
      },
    }
    local expected = {}
    for i = 1, 6 do
      expected[i] = reference("experts_sum", table.move(x, (i - 1) * K + 1, i * K, 1, {}), weights[i])
    end
    harness.compare(found.y, expected, dtype, 1e-6)
  end
end)
