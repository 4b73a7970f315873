-- tests/ops/test_gdn_scan.lua -- Gated DeltaNet's chunk form, as gen/ops/gdn_scan.lua writes it
-- down, is its recurrence: for chunks of any length, and from any memory.

local spec = require "tests.support.spec"
local op = require "gen.op"

local N_TOKENS, D_KEY, D_VALUE = 150, 8, 5
local A_LOG, DT_BIAS = 0.7, -1.3

-- Of deviation 1, the same on every run.
local state = 7
local function random()
  local sum = 0
  for _ = 1, 3 do
    state = state * 6364136223846793005 + 1442695040888963407
    sum = sum + (state >> 11) / 2 ^ 53
  end
  return 2 * sum - 3
end

local function list(n)
  local x = {}
  for i = 1, n do x[i] = random() end
  return x
end

local function matrix(rows, columns)
  local x = {}
  for i = 1, rows do x[i] = list(columns) end
  return x
end

local function copy(x)
  local y = {}
  for i, row in ipairs(x) do y[i] = { table.unpack(row) } end
  return y
end

local function dot(a, b)
  local sum = 0
  for i = 1, #a do sum = sum + a[i] * b[i] end
  return sum
end

local function normed(x, factor)
  local y, scale = {}, factor / math.sqrt(dot(x, x) + 1e-6)
  for i = 1, #x do y[i] = x[i] * scale end
  return y
end

local input = {
  q = matrix(N_TOKENS, D_KEY), k = matrix(N_TOKENS, D_KEY), v = matrix(N_TOKENS, D_VALUE),
  a = list(N_TOKENS), b = list(N_TOKENS),
}

-- Token by token; memory is changed.
local function recurrence(memory)
  local y = {}
  for t = 1, N_TOKENS do
    y[t] = {}
    op.find("gdn_scan").reference(y[t], input.q[t], input.k[t], input.v[t], input.a[t],
      input.b[t], A_LOG, DT_BIAS, memory)
  end
  return y
end

-- Tokens first ... last as one chunk; their rows of y and the memory are changed.
local function chunk(y, first, last, memory)
  local n = last - first + 1
  local Q, K, g, beta = {}, {}, {}, {}
  for i = 1, n do
    local t = first + i - 1
    Q[i] = normed(input.q[t], 1 / math.sqrt(D_KEY))
    K[i] = normed(input.k[t], 1)
    local log_alpha = -math.exp(A_LOG) * math.log(1 + math.exp(input.a[t] + DT_BIAS))
    g[i] = (g[i - 1] or 0) + log_alpha
    beta[i] = 1 / (1 + math.exp(-input.b[t]))
  end
  local function D(i, j) return math.exp(g[i] - g[j]) end

  local U, W, N = {}, {}, {} -- by forward substitution
  for i = 1, n do
    U[i], W[i], N[i] = {}, {}, {}
    for c = 1, D_VALUE do U[i][c] = beta[i] * input.v[first + i - 1][c] end
    for c = 1, D_KEY do W[i][c] = beta[i] * math.exp(g[i]) * K[i][c] end
    for j = 1, i - 1 do
      local l = beta[i] * dot(K[i], K[j]) * D(i, j)
      for c = 1, D_VALUE do U[i][c] = U[i][c] - l * U[j][c] end
      for c = 1, D_KEY do W[i][c] = W[i][c] - l * W[j][c] end
    end
    for c = 1, D_VALUE do
      N[i][c] = U[i][c]
      for r = 1, D_KEY do N[i][c] = N[i][c] - W[i][r] * memory[r][c] end
    end
  end
  for i = 1, n do
    y[first + i - 1] = {}
    for c = 1, D_VALUE do
      local sum = 0
      for r = 1, D_KEY do sum = sum + math.exp(g[i]) * Q[i][r] * memory[r][c] end
      for j = 1, i do sum = sum + dot(Q[i], K[j]) * D(i, j) * N[j][c] end
      y[first + i - 1][c] = sum
    end
  end
  for r = 1, D_KEY do
    for c = 1, D_VALUE do
      local sum = math.exp(g[n]) * memory[r][c]
      for i = 1, n do sum = sum + math.exp(g[n] - g[i]) * K[i][r] * N[i][c] end
      memory[r][c] = sum
    end
  end
end

local function difference(a, b)
  local most = 0
  for i = 1, #a do
    for j = 1, #a[i] do most = math.max(most, math.abs(a[i][j] - b[i][j])) end
  end
  return most
end

for _, length in ipairs { 1, 7, 64, N_TOKENS } do
  spec(("chunks of %d tokens give the recurrence's results and memory"):format(length), function()
    local begin = matrix(D_KEY, D_VALUE)
    local memory, other = copy(begin), copy(begin)
    local expected, y = recurrence(memory), {}

    for first = 1, N_TOKENS, length do
      chunk(y, first, math.min(first + length - 1, N_TOKENS), other)
    end

    spec.near(difference(y, expected), 0, 1e-12, "y")
    spec.near(difference(other, memory), 0, 1e-12, "memory")
  end)
end

spec("a query for a key that was just written with beta near 1 gives its value", function()
  local scan = op.find "gdn_scan"
  local memory, y, v = matrix(D_KEY, D_VALUE), {}, list(D_VALUE)
  local k = list(D_KEY)

  scan.reference(y, k, k, v, 0, 40, A_LOG, DT_BIAS, memory)

  for j = 1, D_VALUE do spec.near(y[j] * math.sqrt(D_KEY), v[j], 1e-5) end
end)
