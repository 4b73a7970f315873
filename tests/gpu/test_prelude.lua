-- tests/gpu/test_prelude.lua -- What the kernels' wrappers do, as host.h and fibers.cpp do it: products
-- of the tensor cores, collectives, sums.

local spec = require "tests.support.spec"
local harness = require "tests.gpu.harness"

-- One block of a kernel whose parameters are called as the values.
local function run(name, text, threads, values)
  local args = {}
  for arg in (text:match("void " .. name .. "%((.-)%)") .. ","):gmatch "([%w_]+)," do args[#args + 1] = arg end
  return harness.run_text({ name = name, text = text, args = args, blocks = { 1 }, threads = threads }, values)
end

spec("mma_bf16 adds the product of fragments as the prelude lays them out", function()
  local a, b, d = harness.matrix(16, 16), harness.matrix(16, 8), harness.matrix(16, 8)
  local out = run("product", [[
DEVICE u32 pair(const u16 *p, const u16 *q)
{
    return (u32)*p | (u32)*q << 16;
}

extern "C" __global__ __launch_bounds__(32) void product(float *y, const u16 *a, const u16 *b, const float *d)
{
    const int g = threadIdx.x / 4, q = threadIdx.x % 4;
    u32 left[4], right[2];
    float sum[4];
    for (int i = 0; i < 4; i++) {
        const u16 *at = a + (g + 8 * (i % 2)) * 16 + 2 * q + 8 * (i / 2);
        left[i] = pair(at, at + 1);
    }
    for (int i = 0; i < 2; i++) {
        const u16 *at = b + (2 * q + 8 * i) * 8 + g;
        right[i] = pair(at, at + 8);
    }
    for (int i = 0; i < 4; i++)
        sum[i] = d[(g + 8 * (i / 2)) * 8 + 2 * q + i % 2];
    mma_bf16(sum, left, right);
    for (int i = 0; i < 4; i++)
        y[(g + 8 * (i / 2)) * 8 + 2 * q + i % 2] = sum[i];
}
]], 32, { y = harness.result("f32", 128), a = harness.bf16(a), b = harness.bf16(b), d = harness.f32(d) })

  local expected = {}
  for i = 1, 16 do
    expected[i] = {}
    for j = 1, 8 do
      local sum = d[i][j]
      for k = 1, 16 do sum = sum + a[i][k] * b[k][j] end
      expected[i][j] = sum
    end
  end
  harness.compare(out.y, expected, "f32")
end)

spec("lanes exchange values and votes as CUDA says", function()
  local out = run("exchange", [[
extern "C" __global__ __launch_bounds__(64) void exchange(int *y)
{
    const int i = threadIdx.x, lane = i % 32;
    int *row = y + i * 6;
    row[0] = __shfl_xor_sync(0xffffffffu, i, 5);
    row[1] = __shfl_sync(0xffffffffu, i, 7);
    row[2] = __shfl_down_sync(0xffffffffu, i, 3);
    row[3] = __shfl_up_sync(0xffffffffu, i, 3);
    row[4] = (int)__ballot_sync(0xffffffffu, lane % 3 == 0);
    row[5] = (int)(__shfl_xor_sync(0xffffffffu, (u64)i << 40, 1) >> 40);
}
]], 64, { y = harness.result("i32", 64 * 6) })

  local votes = 0
  for lane = 0, 31, 3 do votes = votes | 1 << lane end
  for i = 0, 63 do
    local lane, warp = i % 32, i - i % 32
    spec.equal(table.pack(table.unpack(out.y, i * 6 + 1, i * 6 + 6)), table.pack(
      warp + (lane ~ 5), warp + 7, lane + 3 < 32 and i + 3 or i, lane >= 3 and i - 3 or i,
      string.unpack("<i4", string.pack("<I4", votes)), warp + (lane ~ 1)))
  end
end)

spec("block_sum and block_max are of all threads, one after another in one kernel", function()
  local x = harness.numbers(96)
  local out = run("totals", [[
extern "C" __global__ __launch_bounds__(96) void totals(float *y, const float *x)
{
    const float value = x[threadIdx.x];
    const float sum = block_sum<96>(value), most = block_max<96>(value), again = block_sum<96>(-value);
    y[threadIdx.x] = sum;
    y[96 + threadIdx.x] = most;
    y[192 + threadIdx.x] = again;
}
]], 96, { y = harness.result("f32", 288), x = harness.f32(x) })

  local sum, most = 0, -math.huge
  for _, value in ipairs(x) do sum, most = sum + value, math.max(most, value) end
  for i = 1, 96 do
    spec.near(out.y[i], sum, 1e-5)
    spec.equal(out.y[96 + i], most)
    spec.equal(out.y[192 + i], -out.y[i])
  end
end)

spec("all threads of all blocks run, whatever their order and shape", function()
  local text = [[
extern "C" __global__ __launch_bounds__(40) void places(int *y, int n)
{
    const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    y[block * blockDim.x + threadIdx.x] = n + block * 1000 + threadIdx.x;
}
]]
  local out = harness.run_text({ name = "places", text = text, args = { "y", "n" }, blocks = { 2, "n", 5 },
    threads = 40 }, { y = harness.result("i32", 30 * 40), n = 3 })
  for i = 0, 30 * 40 - 1 do spec.equal(out.y[i + 1], 3 + i // 40 * 1000 + i % 40) end
end)
