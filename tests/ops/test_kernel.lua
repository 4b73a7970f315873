-- tests/ops/test_kernel.lua -- runtime/cpu/kernel.h and avx512.h: short floats, exp, rows of
-- int8, and who takes which tiles.

local spec = require "tests.support.spec"
local harness = require "tests.ops.harness"

local function promise(family, name, body)
  spec(family.name .. ": " .. name, function()
    local source = harness.source(family)
    source:write("\nint main(void)\n{\n" .. body .. "\n    return 0;\n}\n")
    harness.run(family, source)
  end)
end

local portable, avx512 = harness.families[1], harness.families[2]

promise(portable, "every half widens exactly", [[
    for (int i = 0; i < 0x10000; i++) {
        const uint16_t bits = (uint16_t)i;
        _Float16 half;
        memcpy(&half, &bits, sizeof half);
        const float right = (float)half, found = burin_f32_of_f16(bits);
        CHECK(right != right ? found != found : memcmp(&right, &found, 4) == 0);
    }]])

promise(portable, "bf16 rounds to nearest even, and NaN stays NaN", [[
    for (int i = 0; i < 0x10000; i++) {
        const float x = burin_f32_of_bf16((uint16_t)i);
        CHECK(x != x || burin_bf16_of_f32(x) == i);
    }
    CHECK(burin_bf16_of_f32(burin_f32_of_bits(0x3f808000)) == 0x3f80); /* a tie, to even */
    CHECK(burin_bf16_of_f32(burin_f32_of_bits(0x3f818000)) == 0x3f82);
    CHECK(burin_bf16_of_f32(burin_f32_of_bits(0x3f808001)) == 0x3f81);
    const float nan = burin_f32_of_bf16(burin_bf16_of_f32(burin_f32_of_bits(0x7fffffff)));
    CHECK(nan != nan);]])

local exp_body = [[
    double worst = 0;
    for (float x = -87.0f; x < 88.5f; x += 0.00037f) {
        const double error = fabs((double)EXP(x) / exp((double)x) - 1);
        worst = error > worst || error != error ? error : worst;
    }
    CHECK(worst < %s);
    CHECK(EXP(0.0f) == 1.0f && EXP(-INFINITY) == 0.0f && EXP(-1000.0f) == 0.0f);
    CHECK(EXP(INFINITY) == INFINITY && EXP(100.0f) == INFINITY);
    CHECK(EXP(-103.0f) > 0.0f); /* subnormal */
    const float nan = EXP(NAN);
    CHECK(nan != nan);]]

promise(portable, "exp is near the truth from end to end",
  "#define EXP burin_exp\n" .. exp_body:format "2e-7")

promise(portable, "silu and gelu are near the truth, and 0 far below zero", [[
    for (float x = -40.0f; x < 40.0f; x += 0.0037f) {
        const double d = (double)x, u = sqrt(2 / M_PI) * (d + 0.044715 * d * d * d);
        CHECK(fabs(burin_silu(x) - d / (1 + exp(-d))) <= 4e-7 * fabs(d));
        CHECK(fabs(burin_gelu_tanh(x) - d / (1 + exp(-2 * u))) <= 1e-6 * fabs(d));
    }
    CHECK(burin_silu(-1e30f) == 0.0f && burin_gelu_tanh(-1e9f) == 0.0f);]])

promise(portable, "tanh is near the truth", [[
    for (float x = -30.0f; x < 30.0f; x += 0.00137f)
        CHECK(fabs(burin_tanh(x) - tanh((double)x)) <= 3e-7 * fabs(tanh((double)x)));
    CHECK(burin_tanh(INFINITY) == 1.0f && burin_tanh(-INFINITY) == -1.0f && burin_tanh(0.0f) == 0.0f);
    const float nan = burin_tanh(NAN);
    CHECK(nan != nan);]])

promise(portable, "a row of int8 holds its values to half a step, and the sums to the bit", [[
    enum { K = 70 };
    float x[K];
    uint8_t *row = obtain(burin_q8_stride(K));
    CHECK(burin_q8_stride(K) == 128 && burin_q8_groups(K) == 3);
    random_fill(x, K, 5);
    x[40] = -9.0f;
    burin_q8_row(row, x, K);
    for (int g = 0; g < 3; g++) {
        const float scale = burin_q8_scales(row, K)[g];
        float largest = 0;
        int total = 0;
        for (int i = g * 32; i < g * 32 + 32; i++) {
            const float value = i < K ? x[i] : 0.0f;
            largest = fabsf(value) > largest ? fabsf(value) : largest;
            CHECK(fabsf(value - scale * ((int8_t *)row)[i]) <= scale * 0.5001f);
            total += ((int8_t *)row)[i];
        }
        CHECK(scale == largest / 127.0f);
        CHECK(burin_q8_sums(row, K)[g] == scale * 128.0f * (float)total);
    }]])

promise(portable, "zeros, the smallest and what is not finite go through a row of int8", [[
    float x[96] = { 0 };
    uint8_t *row = obtain(burin_q8_stride(96));
    x[33] = 1e-44f;
    x[95] = NAN;
    burin_q8_row(row, x, 96);
    const float *scale = burin_q8_scales(row, 96);
    CHECK(scale[0] == 0.0f && ((int8_t *)row)[0] == 0 && burin_q8_sums(row, 96)[0] == 0.0f);
    CHECK(((int8_t *)row)[33] == 0);
    CHECK(scale[2] != scale[2]); /* what is computed from it is NaN */
    x[95] = INFINITY;
    burin_q8_row(row, x, 96);
    CHECK(scale[2] == INFINITY);]])

promise(portable, "tiles are dealt to every thread once, few as one share, many in turn", [[
    for (int n_threads = 1; n_threads <= 5; n_threads++)
        for (int n = 0; n < 300; n++)
            for (int chunk = 1; chunk <= 7; chunk += 3) {
                int times[300] = { 0 }, pieces = 0;
                for (int i = 0; i < n_threads; i++) {
                    const struct burin_team t = { .thread = i, .n_threads = n_threads };
                    const struct burin_deal d = burin_deal(&t, n, chunk);
                    for (int at = d.begin; at < d.end; at += d.step, pieces++)
                        for (int tile = at; tile < burin_min(at + d.chunk, d.end); tile++)
                            times[tile]++;
                }
                for (int i = 0; i < n; i++)
                    CHECK(times[i] == 1);
                CHECK(pieces <= n_threads || n / chunk >= 8 * n_threads);
            }]])

if harness.runs(avx512) then
  promise(avx512, "exp is near the truth from end to end",
    "#define EXP(x) _mm512_cvtss_f32(burin_exp_x16(_mm512_set1_ps(x)))\n" .. exp_body:format "1e-7")

  promise(avx512, "rows of int8 are those of the portable code, to the bit", [[
    for (int i = 0; i < 400; i++) {
        const int k = 1 + i * 7 % 200;
        float x[200];
        uint8_t *a = obtain(burin_q8_stride(k)), *b = obtain(burin_q8_stride(k));
        random_fill(x, (size_t)k, (uint64_t)i);
        for (int j = 0; j < k; j++)
            x[j] *= i % 5 == 1 ? 1e-30f : i % 5 == 2 ? 1e-38f : i % 5 == 3 ? 1e30f : 1.0f;
        if (i % 9 == 0)
            x[i % k] = i % 2 ? NAN : -INFINITY;
        burin_q8_row(a, x, k);
        burin_q8_row_x32(b, x, k);
        CHECK(memcmp(a, b, burin_q8_stride(k)) == 0);
        free(a);
        free(b);
    }]])
end

harness.done()
