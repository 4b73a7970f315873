-- tests/ops/bench_linear.lua -- How fast linear is here, by hand:
--
--   lua5.4 tests/ops/bench_linear.lua [--portable] [--exact] [--mib N] [--prefill] [FORMAT ...]
--
-- For each format: 1, 2, 4 and 8 rows over 256 (or N) MiB of weights, GB/s from memory; 512 rows
-- over matrices of SmolLM2-135M and Qwen2.5-1.5B (only these: --prefill), GOP/s, two operations
-- a weight and row. Medians of 15; one thread is timed by its own clock, two by the wall's.

package.path = "./?.lua;" .. package.path
local harness = require "tests.ops.harness"
local size = require "gen.size"

local main_text = [[
static void run(const struct burin_team *t, void *context)
{
    const struct linear_step *s = context;
    %s;
}

/* One thread: its own time, which other processes don't add to. */
static double time_of(int n_threads)
{
    struct timespec now;
    clock_gettime(n_threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(void)
{
    const size_t tile_bytes = %d, x_bytes = %d;
    const int k = %d, n = %d, tokens = %d;
    const size_t bytes = tile_bytes * (size_t)((n + 31) / 32) * %d;
    uint8_t *w = obtain_huge(bytes), *x = obtain((size_t)tokens * x_bytes);
    float *in = obtain((size_t)k * 4);
    for (size_t i = 0; i < bytes; i += 2) /* halves and bf16 near 1 */
        w[i] = (uint8_t)(i * 37 + i / 4096), w[i + 1] = %s;
    for (int row = 0; row < tokens; row++) {
        random_fill(in, (size_t)k, (uint64_t)row);
        check_put_row(x + (size_t)row * x_bytes, %s, in, k);
    }
    struct linear_step step = { .y_stride = n, .x = x, .w = w, .n_tokens = tokens };
    step.y = obtain((size_t)tokens * (size_t)n * 4);
    step.scratch_stride = %d;
    step.scratch = obtain(step.scratch_stride * 2 + 64);

    printf("%%-34s", "%s");
    for (int n_threads = 1; n_threads <= 2; n_threads++) {
        double best = 1e9, all[15];
        for (int i = 0; i < 15; i++) {
            const double begin = time_of(n_threads);
            on_team(n_threads, run, &step);
            all[i] = time_of(n_threads) - begin;
            best = all[i] < best ? all[i] : best;
        }
        for (int i = 0; i < 15; i++) /* the median */
            for (int j = i + 1; j < 15; j++)
                if (all[j] < all[i]) {
                    const double smaller = all[j];
                    all[j] = all[i], all[i] = smaller;
                }
        printf("  %%dT %%6.1f GB/s %%6.1f GOP/s (best %%6.1f)", n_threads, (double)bytes / all[7] / 1e9,
               2.0 * k * n * tokens * %d / all[7] / 1e9, 2.0 * k * n * tokens * %d / best / 1e9);
    }
    printf("\n");
    return 0;
}
]]

local function bench(family, op_name, format_name, k, n, tokens, out)
  local format = require("gen.formats." .. format_name)
  local act = family.exact and format.act.exact or format.act.default
  local weight = { dims = { size.of(n), size.of(k) }, format = format_name }
  local node = {
    inputs = {
      x = { dims = { size.extent "tokens", size.of(k) }, act = act }, weight = weight, up = weight,
    },
    attrs = op_name == "linear_glu" and { activation = "silu" } or {}, out = out,
  }
  local kernel = harness.kernel(op_name, node, family)
  local n_weights = op_name == "linear_glu" and 2 or 1
  local source = harness.source(family)
  source:write '#include "tests/ops/linear_check.h"\n#include <sys/mman.h>\n'
  source:write [[
static void *obtain_huge(size_t bytes)
{
    const size_t page = 2u << 20;
    uint8_t *at = aligned_alloc(page, (bytes + page - 1) / page * page);
    madvise(at, bytes, MADV_HUGEPAGE);
    return at;
}
]]
  source:add(kernel)
  local scratch = require("gen.ops." .. op_name).scratch(node, family)
  source:write((main_text:format(
    harness.call(kernel, {
      y = "s->y", y_stride = "s->y_stride", x = "s->x", weight = "s->w", rows = "s->n_tokens",
      scratch = "s->scratch + (size_t)t->thread * s->scratch_stride",
    }),
    format.tile_bytes(k), require("gen.formats.act_" .. act).row_bytes(k), k, n, tokens, n_weights,
    format_name == "bf16" and "0x3f" or format_name == "f32" and "0x3f" or "0x2c",
    "ACT_" .. act:upper(), (scratch + 63) // 64 * 64,
    ("%s %s x %s %dx%d M=%d"):format(family.name, format_name, act, n, k, tokens), n_weights, n_weights)
    :gsub("%%%%", "%%")))
  io.write(harness.run(family, source))
  io.flush()
end

local options, formats = { mib = 256 }, {}
local i = 1
while arg[i] do
  local option = arg[i]:match "^%-%-(%w+)$"
  if option == "mib" then
    i = i + 1
    options.mib = tonumber(arg[i])
  elseif option then
    options[option] = true
  else
    formats[#formats + 1] = arg[i]
  end
  i = i + 1
end
if #formats == 0 then formats = { "q4_1", "q4_0", "q8_0", "bf16" } end

local family = harness.families[options.portable and 1 or 2]
family.exact = options.exact or false
for _, name in ipairs(formats) do
  local column_bytes = require("gen.formats." .. name).file_row_bytes(576)
  local n = options.mib * 2 ^ 20 // column_bytes // 32 * 32 // 1 | 0
  for _, rows in ipairs(options.prefill and {} or { 1, 2, 4, 8 }) do
    bench(family, "linear", name, 576, n, rows)
  end
  bench(family, "linear", name, 576, 960, 512)
  bench(family, "linear", name, 1536, 576, 512)
  bench(family, "linear", name, 1536, 8960, 512)
  local act = require("gen.formats." .. name).act[family.exact and "exact" or "default"]
  bench(family, "linear_glu", name, 576, 1536, 512, act)
end
