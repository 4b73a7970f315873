-- tests/gpu/test_made.lua -- Products of rows that are made on their way: clipped_linear and
-- patch_embed on a GPU, few rows and many.

local clipped_linear = require "gen.ops.clipped_linear"
local harness = require "tests.gpu.harness"
local patch_embed = require "gen.ops.patch_embed"
local spec = require "tests.support.spec"
local weights = require "tests.gpu.weights"

local function expected(x, row_of)
  local list = {}
  for i = 1, #x do
    list[i] = {}
    row_of(list[i], x[i])
  end
  return list
end

for _, c in ipairs {
  { format = "bf16", k = 72, n = 41, rows = 9, from = "bf16" },
  { format = "q8_0", k = 96, n = 32, rows = 3, from = "bf16" },
  { format = "f32", k = 100, n = 36, rows = 5, from = "f32" },
} do
  spec(("clipped_linear of %s rows and %s weights"):format(c.from, c.format), function()
    local in_min, in_max, out_min, out_max = -1.1234, 0.7654, -2.5, 3.25
    local tiles, _, rounded = weights.matrix(c.format, c.n, c.k)
    local x = harness.matrix(c.rows, c.k)
    local function scalar(value) return harness.f32 { value } end

    local out = harness.run {
      op = "clipped_linear",
      node = {
        inputs = {
          x = { dims = { "soft", c.k }, dtype = c.from },
          weight = { dims = { c.n, c.k }, format = c.format },
        },
        y = { dims = { "soft", c.n } },
      },
      args = {
        y = harness.result(c.from, c.rows * c.n), x = harness[c.from](x),
        weight = weights.bytes(tiles), in_min = scalar(in_min), in_max = scalar(in_max),
        out_min = scalar(out_min), out_max = scalar(out_max), rows = c.rows,
      },
    }

    harness.compare(out.y, expected(x, function(y, row)
      local low, high = harness.round(in_min), harness.round(in_max) -- clamped, then rounded
      clipped_linear.reference(y, row, rounded, low, high, out_min, out_max)
    end), c.from)
  end)
end

local function pixels(n, k)
  local rows = {}
  for i = 1, n do
    rows[i] = {}
    for j = 1, k do rows[i][j] = math.floor(math.abs(harness.random()) * 99) % 256 end
  end
  return rows
end

for _, c in ipairs {
  { format = "bf16", k = 48, n = 40, rows = 10 },
  { format = "f32", k = 588, n = 34, rows = 4, bias = true },
} do
  spec("patch_embed of " .. c.format .. " weights" .. (c.bias and " with a bias" or ""), function()
    local tiles, _, rounded = weights.matrix(c.format, c.n, c.k)
    local x, bias = pixels(c.rows, c.k), c.bias and harness.numbers(c.n)
    local attrs = { scale = 2 / 255, shift = -1 }

    local out = harness.run {
      op = "patch_embed",
      node = {
        inputs = {
          pixels = { dims = { "soft", c.k }, dtype = "u8" },
          weight = { dims = { c.n, c.k }, format = c.format },
          bias = c.bias and { dims = { c.n }, dtype = "f32" } or nil,
        },
        y = { dims = { "soft", c.n }, dtype = "f32" }, attrs = attrs,
      },
      args = {
        y = harness.result("f32", c.rows * c.n), pixels = harness.u8(x),
        weight = weights.bytes(tiles), bias = bias and harness.f32(bias), rows = c.rows,
      },
    }

    -- Terms of up to 255 |w| are summed before scale and shift make them small.
    harness.compare(out.y, expected(x, function(y, row)
      patch_embed.reference(y, row, rounded, bias or nil, attrs)
    end), "f32", 1e-5)
  end)
end
