/* runtime/cpu/exp2.h -- 2^x within 2e-7 of the true value, one number or sixteen.
 *
 * 2^x = 2^n * 2^f with n the nearest integer and |f| <= 1/2; 2^f is the polynomial of Cephes'
 * exp2f (Moshier 1992). The result is 0 below -126 in the one, gradually so in the other, and
 * both give NaN for NaN. x must be below 127. */
#ifndef BURIN_CPU_EXP2_H
#define BURIN_CPU_EXP2_H

#include "runtime/cpu/short_float.h"

#include <stdint.h>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

#define BURIN_EXP2_C1 6.931472028550421e-1f
#define BURIN_EXP2_C2 2.402264791363012e-1f
#define BURIN_EXP2_C3 5.550332471162809e-2f
#define BURIN_EXP2_C4 9.618437357674640e-3f
#define BURIN_EXP2_C5 1.339887440266574e-3f
#define BURIN_EXP2_C6 1.535336188319500e-4f

static inline float burin_exp2(float x)
{
    const float shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds to integers */
    const float in = x < -126.0f ? -126.0f : x; /* NaN stays */
    const float shifted = in + shift;
    const float f = in - (shifted - shift);
    /* The integer's low bits are the last of `shifted`: they go into the exponent. */
    const uint32_t bits = (burin_bits_of_f32(shifted) << 23) + (127u << 23);

    float y = BURIN_EXP2_C6;
    y = y * f + BURIN_EXP2_C5;
    y = y * f + BURIN_EXP2_C4;
    y = y * f + BURIN_EXP2_C3;
    y = y * f + BURIN_EXP2_C2;
    y = y * f + BURIN_EXP2_C1;
    y = y * f + 1.0f;
    return x < -126.0f ? 0.0f : y * burin_f32_of_bits(bits);
}

#ifdef __AVX512F__
static inline __m512 burin_exp2_x16(__m512 x)
{
    /* The second operand is what max gives for NaN: x, so that NaN stays. */
    const __m512 in = _mm512_max_ps(_mm512_set1_ps(-160.0f), x);
    const __m512 n =
            _mm512_roundscale_ps(in, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m512 f = _mm512_sub_ps(in, n);

    __m512 y = _mm512_set1_ps(BURIN_EXP2_C6);
    y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(BURIN_EXP2_C5));
    y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(BURIN_EXP2_C4));
    y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(BURIN_EXP2_C3));
    y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(BURIN_EXP2_C2));
    y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(BURIN_EXP2_C1));
    y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(1.0f));
    return _mm512_scalef_ps(y, n);
}
#endif

#endif
