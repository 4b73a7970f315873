/* runtime/cpu/short_float.h -- Floats of 16 bits, to f32 and back, bit by bit.
 *
 * NaN      Stays NaN.
 * Threads  Pure functions. */
#ifndef BURIN_CPU_SHORT_FLOAT_H
#define BURIN_CPU_SHORT_FLOAT_H

#include <stdint.h>
#include <string.h>

static inline float burin_f32_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t burin_bits_of_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float burin_f32_of_bf16(uint16_t x)
{
    return burin_f32_of_bits((uint32_t)x << 16);
}

/* Rounded to nearest, ties to even. */
static inline uint16_t burin_bf16_of_f32(float x)
{
    const uint32_t bits = burin_bits_of_f32(x);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const uint32_t quiet = bits >> 16 | 0x40; /* rounding could carry a NaN into infinity */

    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

/* Exact. The exponent is rebased by a multiplication, which takes subnormals along. */
static inline float burin_f32_of_f16(uint16_t x)
{
    const uint32_t sign = (uint32_t)(x & 0x8000) << 16;
    const uint32_t magnitude = (uint32_t)(x & 0x7fff) << 13;
    const uint32_t finite = burin_bits_of_f32(burin_f32_of_bits(magnitude) * 0x1p112f);
    const uint32_t infinite = magnitude | 0x7f800000;

    return burin_f32_of_bits(sign | (magnitude < 0x0f800000 ? finite : infinite));
}

static inline uint16_t burin_load_u16(const uint8_t *at)
{
    uint16_t x;
    memcpy(&x, at, sizeof x);
    return x;
}

#endif
