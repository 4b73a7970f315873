-- tests/ops/test_attention.lua -- Attention and kv_append: right, and the same bits however
-- the tokens come.

local spec = require "tests.support.spec"
local harness = require "tests.ops.harness"
local attention = require "gen.ops.attention"
local kv = require "gen.kv"

local wrapper = [[
static void append_%s(const struct burin_team *t, void *context)
{
    const struct check_step *s = context;
    %s;
}

static void attend_%s(const struct burin_team *t, void *context)
{
    const struct check_step *s = context;
    %s;
}
]]

local config_text = [[
static const struct check_config %s = {
    .name = "%s", .n_heads = %d, .n_kv_heads = %d, .d = %d, .kv_f32 = %s, .out = %s,
    .page_bytes = %d, .layer_offset = %d, .scratch_bytes = %d, .append = append_%s, .attend = attend_%s,
    .window = %d, .spans = %s, .slot_bytes = %d,
};
]]

-- Adds one shape's kernels to a source; returns them and their node.
local function add_kernels(source, family, heads, kv_heads, d, kv_dtype, out, window, spans)
  local head_bytes = kv.head_bytes(d, d, kv_dtype)
  local layer_bytes = kv_heads * head_bytes
  local node = {
    kv_dtype = kv_dtype, out = out,
    inputs = {
      q = { dims = { "tokens", heads * d } },
      k = { dims = { "tokens", kv_heads * d } },
      v = { dims = { "tokens", kv_heads * d } },
      kv = {
        n_heads = kv_heads, d_key = d, d_value = d, page_bytes = 2 * layer_bytes,
        head_bytes = head_bytes, window = window or 0,
        slot_bytes = 2 * layer_bytes * (window or 0) // 64,
      },
      spans = spans and { dims = { "tokens" } } or nil,
    },
  }
  local append = harness.kernel("kv_append", node, family)
  local attend = harness.kernel("attention", node, family)
  source:add(append):add(attend)
  return append, attend, node, layer_bytes
end

-- The same, and its check_config; returns the config's name.
local function add_config(source, family, heads, kv_heads, d, kv_dtype, out, window, spans)
  local append, attend, node, layer_bytes =
    add_kernels(source, family, heads, kv_heads, d, kv_dtype, out, window, spans)
  local name = ("%s_%d_%d_%d_%s"):format(kv_dtype, heads, kv_heads, d, out)
  if window then name = ("%s_%d%s"):format(name, window, spans and "_spans" or "") end
  local values = {
    y = "s->y", q = "s->q", q_stride = "s->q_stride", k = "s->k", v = "s->v",
    k_stride = "s->kv_stride", v_stride = "s->kv_stride", pages = "s->pages",
    positions = "s->positions", sequence_of = "s->sequence_of",
    sequence_begin = "s->sequence_begin", page_table = "s->page_table",
    max_pages = "s->max_pages", n_tokens = "s->n_tokens", ring = "s->ring",
    state_of = "s->state_of", spans = "s->spans",
  }
  local scratch = attention.scratch(node, family)
  local stride = (scratch + 63) // 64 * 64 + 64
  values.scratch = ("s->scratch + t->thread * %d"):format(stride)
  values.scratch_stride = tostring(stride)
  source:write(wrapper, name, harness.call(append, values), name, harness.call(attend, values))
  source:write(config_text, name, name, heads, kv_heads, d,
    kv_dtype == "f32" and "true" or "false", "OUT_" .. out:upper(), 2 * layer_bytes, layer_bytes,
    scratch, name, name, window or 0, tostring(spans or false),
    node.inputs.kv.slot_bytes)
  return name
end

-- heads, kv heads, d, cache, result
local shapes = {
  { 9, 3, 64, "bf16", "q8" },
  { 8, 2, 80, "bf16", "f32" },
  { 16, 1, 136, "bf16", "bf16" },
  { 20, 1, 16, "bf16", "f32" },
  { 6, 3, 8, "f32", "f32" },
  { 7, 1, 32, "f32", "q8" },
}

-- The same, window, whether some tokens see each other
local windows = {
  { 8, 1, 16, "bf16", "f32", 20 },
  { 6, 2, 24, "bf16", "bf16", 64, true },
  { 4, 2, 200, "bf16", "f32", 96 },
  { 6, 3, 8, "f32", "f32", 129, true },
  { 4, 2, 32, "f32", "q8", 21 },
}

local main_text = [[
static void check(const struct check_config *c)
{
    const int lengths[] = { 200, 70, 1, 131 };
    struct check_world w;
    check_world_begin(&w, c, 4, lengths);

    /* Whole prompts, each alone; then the other ways, which must give the same. */
    check_run(&w, &(struct check_cut){ 1, { 512, 512, 512, 512 }, { 0, 1, 2, 3 }, false });
    printf("%s error %.3g\n", c->name, check_error(&w, 7));
    const int chunks[] = { 1, 7, 64, 512 };
    for (int i = 0; i < 4; i++)
        for (int n_threads = 1; n_threads <= 3; n_threads++) {
            const int n = chunks[i];
            check_run(&w, &(struct check_cut){ n_threads, { n, n, n, n }, { 0, 0, 0, 0 }, i % 2 });
        }
    check_run(&w, &(struct check_cut){ 2, { 1, 33, 1, 5 }, { 0, 90, 7, 11 }, true });
    check_run(&w, &(struct check_cut){ 5, { 64, 1, 1, 7 }, { 2, 0, 1, 0 }, false });

    /* A NaN among the keys and values of a later token of the tile. */
    check_poison(&w, 3, 101);
    check_run(&w, &(struct check_cut){ 2, { 512, 512, 512, 512 }, { 0, 0, 0, 0 }, false });
    check_world_end(&w);
}

/* Beyond 16 * 2 blocks parts have 4 of them, beyond 16 * 4 they have 8. */
static void check_long(const struct check_config *c)
{
    const int lengths[] = { 4300, 90 };
    struct check_world w;
    check_world_begin(&w, c, 2, lengths);
    check_run(&w, &(struct check_cut){ 1, { 5000, 5000 }, { 0, 1 }, false });
    printf("%s error %.3g\n", c->name, check_error(&w, 431));
    check_run(&w, &(struct check_cut){ 3, { 300, 1 }, { 0, 1 }, true });
    check_run(&w, &(struct check_cut){ 13, { 40, 90 }, { 0, 7 }, true });
    check_run(&w, &(struct check_cut){ 2, { 4099, 1 }, { 0, 0 }, false });
    check_world_end(&w);
}
]]

-- Of values of deviation 1. Queries and weights are bf16, as the cache is, on avx512: with
-- scores of deviation 2 that is worth 2 % of a value here and there.
local tolerance = { f32 = 4e-6, bf16 = 0.02, q8 = 0.03 }
local narrow_tolerance = { f32 = 0.02, bf16 = 0.03, q8 = 0.04 }

local families = harness.here()
if harness.runs { cpu = "avx512" } then
  local exact = { name = "avx512 exact", exact = true }
  families[#families + 1] = setmetatable(exact, { __index = families[#families] })
end

for _, family in ipairs(families) do
  local source = harness.source(family):write '#include "tests/ops/attention_check.h"\n'
  local calls, shapes = {}, shapes
  if family.exact then shapes = table.move(shapes, 1, 3, 1, {}) end -- the others are the same
  for _, s in ipairs(shapes) do
    calls[#calls + 1] = ("    check(&%s);\n"):format(add_config(source, family, table.unpack(s)))
  end
  for _, s in ipairs(windows) do
    calls[#calls + 1] = ("    check(&%s);\n"):format(add_config(source, family, table.unpack(s)))
  end
  calls[#calls + 1] = ("    check_long(&%s);\n"):format(
    add_config(source, family, 4, 2, 8, "bf16", "f32", 1000, true))
  calls[#calls + 1] = ("    check_long(&%s);\n"):format(add_config(source, family, 4, 2, 8, "bf16", "f32"))
  source:write(main_text)
  source:write("int main(void)\n{\n%s    return 0;\n}\n", table.concat(calls))

  spec(family.name .. ": attention is near the reference, and its bits don't depend on how tokens come", function()
    local output = harness.run(family, source)
    local n = 0
    for kv, out, err in output:gmatch "(%w+)_%d+_%d+_%d+_(%w+)[%w_]* error (%S+)" do
      local narrow = family.cpu == "avx512" and not family.exact and kv == "bf16"
      n = n + 1
      spec.near(tonumber(err) or 0 / 0, 0, (narrow and narrow_tolerance or tolerance)[out], output)
    end
    spec.equal(n, #shapes + #windows + 2)
  end)

  spec(family.name .. ": clang-format would change nothing in the emitted text", function()
    local emitted = harness.source(family)
    for _, list in ipairs { shapes, windows } do
      for _, s in ipairs(list) do add_kernels(emitted, family, table.unpack(s)) end
    end
    spec.equal(harness.unformatted(emitted), nil)
  end)

  spec(family.name .. ": 2^x is within 2e-7, zero for what is small, NaN for NaN", function()
    local vector = family.cpu == "avx512"
    local test = harness.source(family):write([[
static float exp2_of(float x)
{
    return %s;
}

int main(void)
{
    for (float x = -126.0f; x < 1.0f; x += 0.00137f) {
        const double expected = exp2((double)x);
        CHECK(fabs(exp2_of(x) - expected) < 2e-7 * expected);
    }
    CHECK(exp2_of(0.0f) == 1.0f && exp2_of(-200.0f) == 0.0f && exp2_of(-INFINITY) == 0.0f);
    CHECK(isnan(exp2_of(NAN)));
    return 0;
}
]], vector and "_mm512_cvtss_f32(burin_exp2_x16(_mm512_set1_ps(x)))" or "burin_exp2(x)")
    harness.run(family, test)
  end)
end

harness.done()
