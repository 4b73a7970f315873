-- tests/gpu/test_bugs.lua -- The fibers find what they are there for: a kernel that is right passes
-- every check, and each way to get it wrong is found by the checks that are named for it.

local spec = require "tests.support.spec"
local harness = require "tests.gpu.harness"

local N_TILES, TILE = 4, 64

-- y[i] = x[i] + x[i + 33], round each tile of 64: two tiles of memory, the next one on its way while
-- this one is read.
local text = [[
extern "C" __global__ __launch_bounds__(64) void neighbours(
        float *__restrict__ y, const float *__restrict__ x, int n_tiles)
{
    __shared__ __align__(16) float tile[2][64];
    const int i = threadIdx.x;

    if (i < 16)
        copy_async_16(&tile[0][4 * i], x + 4 * i);
    copy_async_commit();
    for (int t = 0; t < n_tiles; t++) {
        if (t + 1 < n_tiles && i < 16)
            copy_async_16(&tile[(t + 1) % 2][4 * i], x + (t + 1) * 64 + 4 * i);
        copy_async_commit();
        copy_async_wait<1>(); /* WAIT */
        __syncthreads();      /* READ */
        y[t * 64 + i] = tile[t % 2][i] + tile[t % 2][(i + 33) % 64];
        __syncthreads();      /* WRITE */
    }
}
]]

-- In each block the first warp leaves what the second takes.
local handed = [[
extern "C" __global__ __launch_bounds__(64) void handed(float *__restrict__ y, const float *__restrict__ x)
{
    __shared__ float left[32];
    const int i = threadIdx.x;
    x += blockIdx.x * 32;
    y += blockIdx.x * 32;

    if (i < 32)
        left[i] = x[i];
    __syncthreads(); /* WARPS */
    if (i >= 32)
        y[i - 32] = left[i - 32];
}
]]

local function check_neighbours(kernel_text)
  local x = harness.numbers(N_TILES * TILE)
  local expected = {}
  for t = 0, N_TILES - 1 do
    for i = 0, TILE - 1 do
      expected[t * TILE + i + 1] = x[t * TILE + i + 1] + x[t * TILE + (i + 33) % TILE + 1]
    end
  end
  local out = harness.run_text(
    { name = "neighbours", text = kernel_text, args = { "y", "x", "n_tiles" }, blocks = { 1 }, threads = 64 },
    { y = harness.result("f32", #x), x = harness.f32(x), n_tiles = N_TILES })
  harness.compare(out.y, expected, "f32")
end

local function check_handed(kernel_text)
  local x = harness.numbers(3 * 32)
  local out = harness.run_text(
    { name = "handed", text = kernel_text, args = { "y", "x" }, blocks = { 3 }, threads = 64 },
    { y = harness.result("f32", #x), x = harness.f32(x) })
  harness.compare(out.y, x, "f32")
end

-- With one edit; the message of what was found, or nil.
local function found(check, run, kernel_text, from, to)
  local at, till = kernel_text:find(from, 1, true)
  local edited = kernel_text:sub(1, at - 1) .. to .. kernel_text:sub(till + 1)
  local before = harness.check
  harness.check = check
  local ok, why = pcall(run, edited)
  harness.check = before
  assert(ok or not tostring(why):find "doesn't compile", why)
  return not ok and tostring(why) or nil
end

local every = { "", "address", "thread" }

for _, check in ipairs(every) do
  local name = check == "" and "in all orders" or "under " .. check
  spec("a right kernel passes " .. name, function()
    spec.equal(found(check, check_neighbours, text, "/* READ */", ""), nil)
    spec.equal(found(check, check_handed, handed, "/* WARPS */", ""), nil)
  end)
end

local bugs = {
  { "no barrier before a read", check_neighbours, text, "__syncthreads();      /* READ */", "",
    { [""] = "", thread = "data race" } },
  { "no barrier before a write", check_neighbours, text, "__syncthreads();      /* WRITE */", "",
    { [""] = "", thread = "data race" } },
  { "a copy that is waited for too late", check_neighbours, text, "copy_async_wait<1>()", "copy_async_wait<2>()",
    { [""] = "", thread = "data race" } },
  { "a store behind shared memory", check_handed, handed, "left[i] = x[i];", "{\n float *at = left;\n at[i + 1] = x[i]; }",
    { address = "global-buffer-overflow" } },
  { "a row that is read beyond its end", check_neighbours, text, "x + (t + 1) * 64 + 4 * i", "x + (t + 2) * 64 + 4 * i",
    { [""] = "of x, which has 1024", address = "of x, which has 1024" } },
  { "a warp that reads what another writes", check_handed, handed, "__syncthreads(); /* WARPS */", "",
    { [""] = "", thread = "data race" } },
  { "blocks that write the same to one place", check_handed, handed, "if (i >= 32)", "if (i == 0)\n y[-(int)blockIdx.x * 32] = x[-(int)blockIdx.x * 32];\n if (i >= 32)",
    { thread = "data race" } },
  { "a barrier that one warp does not reach", check_handed, handed, "__syncthreads(); /* WARPS */",
    "if (i < 32) __syncthreads();", { [""] = "__syncthreads" } },
  { "two barriers where one is meant", check_handed, handed, "__syncthreads(); /* WARPS */",
    "if (i < 32) __syncthreads();\n else __syncthreads();", { [""] = "others of the block are in" } },
  { "lanes that shuffle with lanes that are elsewhere", check_handed, handed, "__syncthreads(); /* WARPS */",
    "if (i % 32 < 16) __shfl_sync(~0u, i, 0);\n else __syncwarp();\n __syncthreads();",
    { [""] = "a shuffle" } },
  { "copies that nobody waits for", check_neighbours, text, "copy_async_wait<1>();", "", { [""] = "" } },
  { "a copy to an address that is no multiple of 16", check_neighbours, text, "&tile[0][4 * i]", "&tile[0][4 * i + 1]",
    { [""] = "not multiples of 16" } },
  { "a store beyond dynamic shared memory", check_handed, handed, "left[i] = x[i];",
    "left[i] = x[i];\n DYNAMIC_SHARED(float, more);\n more[i] = x[i];", { [""] = "Segmentation fault" } },
}
for _, bug in ipairs(bugs) do
  local name, run, kernel_text, from, to, by = table.unpack(bug)
  spec("is found: " .. name, function()
    for _, check in ipairs(every) do
      if by[check] then
        local why = found(check, run, kernel_text, from, to)
        spec.equal(why ~= nil, true, "found by '" .. check .. "'")
        spec.contains(why, by[check])
      end
    end
  end)
end
