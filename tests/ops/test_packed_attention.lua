-- tests/ops/test_packed_attention.lua -- packed_attention: right, and an item's bits are the same
-- alone and among others, whatever they hold, on any number of threads.

local spec = require "tests.support.spec"
local harness = require "tests.ops.harness"
local op = require "gen.ops.packed_attention"

local main_text = [[
enum { HEADS = %d, D = %d, D_Q = HEADS * D, STRIDE = D_Q + 3, SCRATCH = %d, ROW_BYTES = %d };
static const int n_of[] = { 9, 130, 1, 64, 270 }; /* rows of each item */
enum { N_ITEMS = 5, N_ROWS = 9 + 130 + 1 + 64 + 270 };

struct step {
    void *y;
    const float *q, *k, *v;
    const int32_t *item_begin;
    int n_rows;
    uint8_t *scratch;
};

static void run(const struct burin_team *t, void *context)
{
    const struct step *s = context;
    %s;
}

static double value(const uint8_t *row, int i)
{
    return %s;
}

int main(void)
{
    const size_t bytes = sizeof(float) * N_ROWS * STRIDE;
    float *q = obtain(bytes), *k = obtain(bytes), *v = obtain(bytes);
    uint8_t *expected = obtain(N_ROWS * ROW_BYTES), *y = obtain(N_ROWS * ROW_BYTES);
    uint8_t *scratch = obtain(SCRATCH * MAX_THREADS);
    /* As of N_ROWS items at most: entries behind the last one say how many rows there are. */
    int32_t begin[N_ROWS + 1];

    random_fill(q, bytes / 4, 1);
    random_fill(k, bytes / 4, 2);
    random_fill(v, bytes / 4, 3);
    memset(expected, 0x3c, N_ROWS * ROW_BYTES);
    double worst = 0.0;
    for (int item = 0, first = 0; item < N_ITEMS; first += n_of[item++]) {
        struct step alone = { .scratch = scratch, .n_rows = n_of[item], .item_begin = begin };
        for (int i = 0; i <= n_of[item]; i++)
            begin[i] = i == 0 ? 0 : n_of[item];
        alone.y = expected + (size_t)first * ROW_BYTES;
        alone.q = q + (size_t)first * STRIDE;
        alone.k = k + (size_t)first * STRIDE;
        alone.v = v + (size_t)first * STRIDE;
        memset(scratch, 0xff, SCRATCH * MAX_THREADS);
        on_team(1, run, &alone);

        for (int row = first; row < first + n_of[item]; row += 5)
            for (int head = 0; head < HEADS; head++) {
                const float *of = q + row * STRIDE + head * D;
                double score[512], max = -INFINITY, sum = 0.0;
                for (int j = 0; j < n_of[item]; j++) {
                    const float *key = k + (first + j) * STRIDE + head * D;
                    score[j] = 0.0;
                    for (int i = 0; i < D; i++)
                        score[j] += (double)of[i] * (double)key[i] * SCALE;
                    max = fmax(max, score[j]);
                }
                for (int j = 0; j < n_of[item]; j++)
                    sum += score[j] = exp(score[j] - max);
                for (int i = 0; i < D; i++) {
                    double right = 0.0;
                    for (int j = 0; j < n_of[item]; j++)
                        right += score[j] / sum * (double)v[(first + j) * STRIDE + head * D + i];
                    const double found = value(expected + (size_t)row * ROW_BYTES, head * D + i);
                    const double error = fabs(found - right);
                    if (!(error <= worst))
                        worst = error;
                }
            }
    }
    printf("error %%.3g\n", worst);

    /* Together; then with all others NaN. */
    begin[0] = 0;
    for (int item = 0; item < N_ROWS; item++)
        begin[item + 1] = item < N_ITEMS ? begin[item] + n_of[item] : N_ROWS;
    struct step all = {
        .y = y, .q = q, .k = k, .v = v, .item_begin = begin, .n_rows = N_ROWS, .scratch = scratch
    };
    for (int n_threads = 1; n_threads <= 4; n_threads++) {
        memset(scratch, 0xff, SCRATCH * MAX_THREADS);
        memset(y, 0x3c, N_ROWS * ROW_BYTES);
        on_team(n_threads, run, &all);
        CHECK(memcmp(y, expected, N_ROWS * ROW_BYTES) == 0);
    }
    const size_t at = 9, end = 9 + 130; /* the second item */
    for (size_t row = 0; row < N_ROWS; row++)
        for (size_t i = 0; i < STRIDE && (row < at || row >= end); i++)
            q[row * STRIDE + i] = k[row * STRIDE + i] = v[row * STRIDE + i] = NAN;
    on_team(3, run, &all);
    CHECK(memcmp(y + at * ROW_BYTES, expected + at * ROW_BYTES, (end - at) * ROW_BYTES) == 0);
    return 0;
}
]]

local value = {
  f32 = "(double)((const float *)(const void *)row)[i]",
  bf16 = "(double)burin_f32_of_bf16(((const uint16_t *)(const void *)row)[i])",
  q8 = "(double)(burin_q8_scales((uint8_t *)(uintptr_t)row, D_Q)[i / 32] * (float)((const int8_t *)row)[i])",
}

-- heads, of width, result, scale
local configs = {
  { 3, 64, "f32" }, { 2, 72, "f32", 1 }, { 2, 8, "f32" }, { 3, 24, "f32" }, { 2, 72, "bf16" },
  { 2, 32, "q8" },
}

-- Inputs and results are about 1; what is narrow has a rounding of 2^-9 in scores of up to 5.
local tolerance = { f32 = 3e-6, bf16 = 8e-3, q8 = 2e-2 }

for _, family in ipairs(harness.here()) do
  for _, exact in ipairs { false, true } do
    family.exact = exact
    local what = family.name .. (exact and ", exact" or "")
    for _, c in ipairs(configs) do
      local heads, d, out, scale = table.unpack(c)
      spec(("%s: %d heads of %d, as %s"):format(what, heads, d, out), function()
        local qkv = { dims = { "soft", heads * d } }
        local node = {
          inputs = { q = qkv, k = qkv, v = qkv, item_begin = { dims = { "soft" } } },
          attrs = { d_head = d, n_heads = heads, scale = scale and scale / math.sqrt(d) }, out = out,
        }
        local kernel = harness.kernel("packed_attention", node, family)
        local source = harness.source(family):add(kernel)
        source:write("#define SCALE %s\n\n", ("%.17g"):format(1 / math.sqrt(d)))
        local scratch = (op.scratch(node, family) + 63) // 64 * 64
        source:write("%s", main_text:format(heads, d, scratch,
          require("gen.formats.act_" .. out).row_bytes(heads * d),
          harness.call(kernel, {
            y = "s->y", q = "s->q", k = "s->k", v = "s->v", q_stride = "STRIDE", k_stride = "STRIDE",
            v_stride = "STRIDE", item_begin = "s->item_begin", rows = "s->n_rows",
            scratch = "s->scratch + t->thread * SCRATCH",
          }), value[out]))
        local error = harness.numbers(harness.run(family, source), "error")[1]
        local narrow = family.cpu == "avx512" and not exact
        spec.near(error, 0, math.max(tolerance[out], narrow and tolerance.bf16 or 0))
      end)

      spec(("%s: %d heads of %d: clang-format would change nothing"):format(what, heads, d), function()
        local node = {
          inputs = { q = {}, k = {}, v = {}, item_begin = {} }, out = out,
          attrs = { d_head = d, n_heads = heads, scale = scale }, dim_name = function() return "D_INTERMEDIATE" end,
        }
        local emitted = harness.source(family):add(harness.kernel("packed_attention", node, family))
        spec.equal(harness.unformatted(emitted), nil)
      end)
    end
  end
end

harness.done()
