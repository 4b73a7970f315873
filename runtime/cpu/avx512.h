/* runtime/cpu/avx512.h -- What emitted kernels of the family avx512 share: loads, and the
 * functions of kernel.h on vectors of 16.
 *
 * Needs    AVX-512 F, BW, DQ, VL, VNNI and BF16; included only by files compiled for them.
 * Bits     Lanes never mix, and a tail is a masked vector: an element has the same bits in
 *          whatever lane and row it stands. */
#ifndef BURIN_CPU_AVX512_H
#define BURIN_CPU_AVX512_H

#include "runtime/cpu/kernel.h"

#include <immintrin.h>

/* ---- Loads ------------------------------------------------------------------------- */

/* 16 halves, widened. */
static inline __m512 burin_load_f16(const uint8_t *at)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)at));
}

/* Of 16 pairs of bf16, the first and the second ones, widened. */
static inline __m512 burin_bf16_low_x16(__m512i pairs)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
}

static inline __m512 burin_bf16_high_x16(__m512i pairs)
{
    return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32((int)0xffff0000)));
}

/* Any four bytes. */
typedef int32_t burin_four __attribute__((may_alias, aligned(1)));

/* sum += weights . x in every lane: 4 unsigned weights, the same 4 signed bytes of x for all.
 * gcc 12 would give the broadcast a register and an instruction of its own, and with 8 rows
 * at once there is no register left. */
static inline __m512i burin_dot4(__m512i sum, __m512i weights, const void *x)
{
    __asm__("vpdpbusd %2%{1to16%}, %1, %0"
            : "+v"(sum)
            : "v"(weights), "m"(*(const burin_four *)x));
    return sum;
}

/* sum += weights . x in every lane: a pair of bf16 each, the same pair of x for all. */
static inline __m512 burin_dot2(__m512 sum, __m512i weights, const void *x)
{
    __asm__("vdpbf16ps %2%{1to16%}, %1, %0"
            : "+v"(sum)
            : "v"(weights), "m"(*(const burin_four *)x));
    return sum;
}

/* What was read from memory before is read again behind it, not kept in registers. */
static inline void burin_reload(void)
{
    __asm__ volatile("" : : : "memory");
}

/* The first n of 16 lanes; none when n <= 0. */
static inline __mmask16 burin_first(int n)
{
    return (__mmask16)(n >= 16 ? 0xffff : n <= 0 ? 0 : (1u << n) - 1);
}

/* ---- exp and what is made of it ---------------------------------------------------- */

/* As burin_exp, with fused multiply-adds: e^x within 1e-7; 0 below -104, infinity above 89. */
static inline __m512 burin_exp_x16(__m512 x)
{
    /* max and min give their second operand where one is NaN. */
    x = _mm512_max_ps(_mm512_set1_ps(-104.0f), x);
    x = _mm512_min_ps(_mm512_set1_ps(89.0f), x);
    const __m512 n = _mm512_roundscale_ps(
            _mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)),
            _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);

    __m512 p = _mm512_set1_ps(1.9875691500e-4f);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.3981999507e-3f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(8.3334519073e-3f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(4.1665795894e-2f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.6666665459e-1f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.0000001201e-1f));
    p = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r);
    return _mm512_scalef_ps(_mm512_add_ps(p, _mm512_set1_ps(1.0f)), n);
}

static inline __m512 burin_silu_x16(__m512 x)
{
    const __m512 one = _mm512_set1_ps(1.0f);
    const __m512 minus_x = _mm512_sub_ps(_mm512_setzero_ps(), x);

    return _mm512_div_ps(x, _mm512_add_ps(one, burin_exp_x16(minus_x)));
}

static inline __m512 burin_gelu_tanh_x16(__m512 x)
{
    const __m512 one = _mm512_set1_ps(1.0f);
    const __m512 cube = _mm512_mul_ps(x, _mm512_mul_ps(x, x));
    const __m512 inner = _mm512_fmadd_ps(_mm512_set1_ps(0.044715f), cube, x);
    const __m512 minus_2u = _mm512_mul_ps(_mm512_set1_ps(-2.0f * 0.797884561f), inner);

    return _mm512_div_ps(x, _mm512_add_ps(one, burin_exp_x16(minus_2u)));
}

/* ---- Rows of int8: the bits of kernel.h ---------------------------------------------- */

/* One group of an int8 row: the bits of burin_q8_group(). x[0..15], x[16..31]. */
static inline void burin_q8_group_x32(
        int8_t *q, float *scale, float *sum, __m512 low, __m512 high)
{
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
    const uint32_t most = _mm512_reduce_max_epu32(_mm512_max_epu32(
            _mm512_and_si512(_mm512_castps_si512(low), magnitude),
            _mm512_and_si512(_mm512_castps_si512(high), magnitude)));
    const float largest = burin_f32_of_bits(most);
    const __m512 inverse = _mm512_set1_ps(largest < 0x1p-100f ? 0.0f : 127.0f / largest);

    /* The rounding of kernel.h: what is not finite gives the same bytes too. */
    const __m512 round = _mm512_set1_ps(0x1.8p23f);
    const __m512i base = _mm512_set1_epi32(0x4b400000);
    const __m512i low_q = _mm512_sub_epi32(
            _mm512_castps_si512(_mm512_add_ps(_mm512_mul_ps(low, inverse), round)), base);
    const __m512i high_q = _mm512_sub_epi32(
            _mm512_castps_si512(_mm512_add_ps(_mm512_mul_ps(high, inverse), round)), base);
    const __m256i bytes =
            _mm256_set_m128i(_mm512_cvtepi32_epi8(high_q), _mm512_cvtepi32_epi8(low_q));
    _mm256_storeu_si256((__m256i *)(void *)q, bytes);

    const __m256i sums =
            _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), bytes);
    const __m128i four =
            _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    const __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
    const int total = _mm_cvtsi128_si32(two) + _mm_extract_epi32(two, 1);
    *scale = largest / 127.0f;
    *sum = *scale * 128.0f * (float)total;
}

/* A row from k floats: the bits of burin_q8_row(). */
static inline void burin_q8_row_x32(uint8_t *restrict row, const float *restrict x, int k)
{
    float *const scales = burin_q8_scales(row, k);
    float *const sums = burin_q8_sums(row, k);

    for (int g = 0; g < burin_q8_groups(k); g++) {
        const float *const in = x + g * 32;
        const int n = k - g * 32;
        burin_q8_group_x32(
                (int8_t *)row + g * 32, scales + g, sums + g,
                _mm512_maskz_loadu_ps(burin_first(n), in),
                _mm512_maskz_loadu_ps(burin_first(n - 16), in + 16));
    }
}

/* ---- Gated units --------------------------------------------------------------------- */

/* gate = silu(gate) * up, 32 of each. */
static inline void burin_silu_mul_x16(float *restrict gate, const float *restrict up)
{
    for (int i = 0; i < 32; i += 16) {
        const __m512 f = burin_silu_x16(_mm512_loadu_ps(gate + i));
        _mm512_storeu_ps(gate + i, _mm512_mul_ps(f, _mm512_loadu_ps(up + i)));
    }
}

/* gate = gelu_tanh(gate) * up, 32 of each. */
static inline void burin_gelu_tanh_mul_x16(float *restrict gate, const float *restrict up)
{
    for (int i = 0; i < 32; i += 16) {
        const __m512 f = burin_gelu_tanh_x16(_mm512_loadu_ps(gate + i));
        _mm512_storeu_ps(gate + i, _mm512_mul_ps(f, _mm512_loadu_ps(up + i)));
    }
}

#endif
