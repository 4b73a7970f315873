-- tests/gen/test_cuda_tiles.lua -- What products on a GPU promise before they run.

local cuda_tiles = require "gen.cuda_tiles"
local linear = require "gen.ops.linear"
local spec = require "tests.support.spec"

local function node(k, format)
  return {
    inputs = {
      x = { dims = { "tokens", k }, dtype = "bf16" },
      weight = { dims = { 70, k }, format = format },
    },
    y = { dims = { "tokens", 70 }, dtype = "bf16" }, attrs = {},
    dim_name = function(n) return tostring(n) end,
  }
end

spec("columns are cut into at most 16 segments of an even number of steps", function()
  for k = 4, 24000, 4 do
    local steps, segment = cuda_tiles.steps(k)

    spec.equal(steps, (k + 31) // 32)
    spec.equal(segment % 2, 0)
    spec.equal((steps + segment - 1) // segment <= 16, true, k .. " columns")
  end
end)

spec("a block for few rows has a warp for each segment", function()
  for _, k in ipairs { 52, 2048, 2816, 21504 } do
    local launch = linear.cuda(node(k, "bf16")).launches[1]
    local steps, segment = cuda_tiles.steps(k)

    spec.equal(launch.few.threads, (steps + segment - 1) // segment * 32)
  end
end)

spec("kernels for few rows and for many are of the same segments", function()
  local launch = linear.cuda(node(2816, "q4_0")).launches[1]
  local many, few = launch.needs[1].params, launch.few.needs[1].params

  spec.equal({ few.steps, few.segment }, { many.steps, many.segment })
end)

spec("columns that aren't in fours are planned only", function()
  spec.equal(linear.cuda(node(37, "bf16")), { kernels = 1 })
end)
