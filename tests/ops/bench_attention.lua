-- tests/ops/bench_attention.lua -- What attention costs: all layers of a model, bf16 cache.
--
--   lua5.4 tests/ops/bench_attention.lua [heads kv_heads d layers [window]]   SmolLM2-135M if left out
--
-- prefill: one sequence of 512 tokens. decode: one token at the end of a context, the cache
-- cold but for what fits in the processor's caches. Best of several runs, milliseconds.

local harness = require "tests.ops.harness"
local attention = require "gen.ops.attention"

local heads, kv_heads = tonumber(arg[1] or 9), tonumber(arg[2] or 3)
local d, layers = tonumber(arg[3] or 64), tonumber(arg[4] or 30)
local window = tonumber(arg[5] or 0)
local head_bytes = require("gen.kv").head_bytes(d, d, "bf16")
local layer_bytes = kv_heads * head_bytes

local main_text = [[
enum { LAYERS = %d, D_Q = %d, D_KV = %d, LAYER_BYTES = %d, SCRATCH = %d, MAX = 8192 };
static float *q, *kv;
static uint8_t *y, *pages, *scratch;
static int32_t *positions, *sequence_of, sequence_begin[2], *page_table;
static int n_tokens;

static void append(const struct burin_team *t, void *context)
{
    (void)context;
    for (int layer = 0; layer < LAYERS; layer++)
        %s;
}

static void attend(const struct burin_team *t, void *context)
{
    (void)context;
    for (int layer = 0; layer < LAYERS; layer++) {
        %s;
        burin_barrier(t);
    }
}

/* Of several steps in one team, the best. */
struct timing {
    team_run *run;
    int times;
    double best_ms;
};

static void timed(const struct burin_team *t, void *context)
{
    struct timing *timing = context;
    for (int i = 0; i < timing->times; i++) {
        burin_barrier(t);
        const double begin = now_s();
        timing->run(t, NULL);
        burin_barrier(t);
        const double ms = (now_s() - begin) * 1e3;
        if (t->thread == 0 && ms < timing->best_ms)
            timing->best_ms = ms;
    }
}

static double best_ms(int n_threads, team_run *run, int times)
{
    struct timing timing = { run, times, 1e9 };
    on_team(n_threads, timed, &timing);
    return timing.best_ms;
}

static void tokens(int first, int n)
{
    n_tokens = n;
    for (int i = 0; i < n; i++)
        positions[i] = first + i;
    sequence_begin[1] = n;
}

int main(void)
{
    q = obtain(MAX * (size_t)D_Q * 4);
    kv = obtain(MAX * (size_t)D_KV * 4);
    y = obtain(MAX * (size_t)D_Q * 4);
    pages = obtain((size_t)MAX / 64 * LAYERS * LAYER_BYTES);
    scratch = obtain(16 * SCRATCH);
    positions = obtain(MAX * 4);
    sequence_of = obtain(MAX * 4);
    page_table = obtain(MAX / 64 * 4);
    for (int i = 0; i < MAX / 64; i++)
        page_table[i] = i;
    random_fill(q, MAX * (size_t)D_Q, 1);
    random_fill(kv, MAX * (size_t)D_KV, 2);
    tokens(0, MAX);
    on_team(2, append, NULL);
    for (int n_threads = 1; n_threads <= 2; n_threads++) {
        printf("%%d threads:", n_threads);
        tokens(0, 512);
        printf("  append 512 %%7.3f", best_ms(n_threads, append, 9));
        printf("  prefill 512 %%7.2f", best_ms(n_threads, attend, 9));
        tokens(511, 1);
        printf("  decode at 512 %%7.3f", best_ms(n_threads, attend, 50));
        tokens(2047, 1);
        printf("  2048 %%7.3f", best_ms(n_threads, attend, 20));
        tokens(8191, 1);
        const double ms = best_ms(n_threads, attend, 9);
        printf("  8192 %%7.3f (%%.1f GB/s)\n", ms, MAX / 64 * 1e-6 * LAYERS * LAYER_BYTES / ms);
    }
    return 0;
}
]]

for _, family in ipairs(harness.here()) do
  local node = {
    kv_dtype = "bf16", out = "q8",
    inputs = {
      q = { dims = { "tokens", heads * d } },
      k = {}, v = {},
      kv = {
        n_heads = kv_heads, d_key = d, d_value = d, page_bytes = layers * layer_bytes,
        head_bytes = head_bytes, window = window, slot_bytes = layers * layer_bytes * window // 64,
      },
    },
  }
  if d % 32 ~= 0 then node.out = "f32" end
  local append = harness.kernel("kv_append", node, family)
  local attend = harness.kernel("attention", node, family)
  local stride = (attention.scratch(node, family) + 63) // 64 * 64
  local values = {
    y = "(void *)y", pages = "pages + layer * LAYER_BYTES", q_stride = "D_Q", k = "kv", v = "kv",
    k_stride = "D_KV", v_stride = "D_KV", max_pages = "MAX / 64",
    scratch = "scratch + t->thread * SCRATCH", scratch_stride = "SCRATCH", state_of = "sequence_of",
    ring = ("pages + layer * (size_t)LAYER_BYTES * %d"):format(window // 64),
  }
  local source = harness.source(family):add(append):add(attend)
  source:write(main_text, layers, heads * d, kv_heads * d, layer_bytes, stride,
    harness.call(append, values), harness.call(attend, values))
  io.write(family.name, "\n", harness.run(family, source))
end
