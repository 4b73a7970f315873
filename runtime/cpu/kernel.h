/* runtime/cpu/kernel.h -- What emitted kernels share on any CPU: exp, rows of int8, and how a team
 * divides the tiles of a matrix.
 *
 * Bits     Every function is a fixed sequence of f32 operations, without contraction, so a
 *          loop over it gives the same bits whatever width the compiler makes of it.
 *          avx512.h has its own exp (with fused multiply-adds); the int8 rows are equal.
 * NaN      Comes through every function, int8 rows included: a row's scale becomes NaN. */
#ifndef BURIN_CPU_KERNEL_H
#define BURIN_CPU_KERNEL_H

#include "runtime/cpu/short_float.h"
#include "runtime/cpu/team.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- exp and what is made of it ---------------------------------------------------- */

/* e^x within 2e-7 of x's true value. Cody and Waite's reduction and the polynomial of
 * Cephes' expf (Moshier 1989); 0 below -104, infinity above 89. */
static inline float burin_exp(float x)
{
    const float round = 0x1.8p23f; /* adding it leaves an integer in the low bits */
    const float low = x < -104.0f ? -104.0f : x;
    const float in = low > 89.0f ? 89.0f : low;
    const float shifted = in * 1.44269504f + round;
    const float n = shifted - round;
    const float r =
            in - n * 0.693359375f - n * -2.12194440e-4f; /* n ln 2, first part exact */

    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;

    /* 2^n in two factors: n goes from -150 to 128, beyond one exponent. */
    const int32_t exponent = (int32_t)(burin_bits_of_f32(shifted) - 0x4b400000u);
    const int32_t half = exponent >> 1;
    return p * burin_f32_of_bits((uint32_t)(half + 127) << 23) *
           burin_f32_of_bits((uint32_t)(exponent - half + 127) << 23);
}

static inline float burin_silu(float x)
{
    return x / (1.0f + burin_exp(-x));
}

/* x/2 (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3), as x / (1 + e^-2u). */
static inline float burin_gelu_tanh(float x)
{
    const float u = 0.797884561f * (x + 0.044715f * (x * x * x));

    return x / (1.0f + burin_exp(-2.0f * u));
}

/* Within 3e-7 of the true value's size: Cephes' tanhf (Moshier 1989), by exp beyond 0.625. */
static inline float burin_tanh(float x)
{
    const float z = x * x;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    const float near = x + x * (z * p);
    const float far = 1.0f - 2.0f / (burin_exp(2.0f * x) + 1.0f);
    return z < 0.625f * 0.625f ? near : far;
}

/* gate = silu(gate) * up, 32 of each. */
static inline void burin_silu_mul(float *restrict gate, const float *restrict up)
{
    for (int i = 0; i < 32; i++)
        gate[i] = burin_silu(gate[i]) * up[i];
}

/* gate = gelu_tanh(gate) * up, 32 of each. */
static inline void burin_gelu_tanh_mul(float *restrict gate, const float *restrict up)
{
    for (int i = 0; i < 32; i++)
        gate[i] = burin_gelu_tanh(gate[i]) * up[i];
}

/* x, but at least `low` and at most `high`. */
static inline float burin_clamp(float x, float low, float high)
{
    const float least = x < low ? low : x;
    return least > high ? high : least;
}

/* ---- Rows of int8: the activation format q8, gen/formats/act_q8.lua ------------------ */

/* A row of k values, in groups of 32, the last one padded with zeros:
 *   int8  q[k]           x = scale * q, |q| <= 127
 *   float scale[k / 32]  largest magnitude / 127
 *   float sum[k / 32]    128 * scale * (q's sum): kernels hold weights as bytes offset by
 *                        128, and subtract this
 * Rows begin at multiples of 64 bytes. */
static inline int burin_q8_groups(int k)
{
    return (k + 31) / 32;
}

static inline size_t burin_q8_stride(int k)
{
    return ((size_t)burin_q8_groups(k) * 40 + 63) / 64 * 64;
}

static inline float *burin_q8_scales(uint8_t *row, int k)
{
    return (float *)(void *)(row + (size_t)burin_q8_groups(k) * 32);
}

static inline float *burin_q8_sums(uint8_t *row, int k)
{
    return burin_q8_scales(row, k) + burin_q8_groups(k);
}

static inline void burin_q8_group(
        int8_t *restrict q, /* (32) */
        float *restrict scale,
        float *restrict sum,
        const float *restrict x) /* (32) */
{
    /* Magnitudes compare as integers, and NaN is the greatest. */
    uint32_t most = 0;
    for (int i = 0; i < 32; i++) {
        const uint32_t magnitude = burin_bits_of_f32(x[i]) & 0x7fffffff;
        most = magnitude > most ? magnitude : most;
    }
    const float largest = burin_f32_of_bits(most);
    const float inverse = largest < 0x1p-100f ? 0.0f : 127.0f / largest;
    const float round = 0x1.8p23f; /* to nearest, ties to even */

    int32_t total = 0;
    for (int i = 0; i < 32; i++) {
        const uint32_t bits = burin_bits_of_f32(x[i] * inverse + round);
        const int32_t value = (int32_t)(bits - 0x4b400000u);
        q[i] = (int8_t)value;
        total += (int8_t)value;
    }
    *scale = largest / 127.0f;
    *sum = *scale * 128.0f * (float)total;
}

/* A row as above from k floats. */
static inline void burin_q8_row(uint8_t *restrict row, const float *restrict x, int k)
{
    float *const scales = burin_q8_scales(row, k);
    float *const sums = burin_q8_sums(row, k);
    const int whole = k / 32;

    for (int g = 0; g < whole; g++)
        burin_q8_group((int8_t *)row + g * 32, scales + g, sums + g, x + g * 32);
    if (k % 32 != 0) {
        float last[32] = { 0 };
        memcpy(last, x + whole * 32, (size_t)(k % 32) * sizeof *x);
        burin_q8_group((int8_t *)row + whole * 32, scales + whole, sums + whole, last);
    }
}

/* What a row of int8 made of x has rounded away. */
static inline void burin_q8_rest(
        float *restrict rest, /* (k) */
        uint8_t *restrict row,
        const float *restrict x,
        int k)
{
    const int8_t *q = (const int8_t *)row;
    const float *scales = burin_q8_scales(row, k);

    for (int i = 0; i < k; i++)
        rest[i] = x[i] - scales[i / 32] * (float)q[i];
}

/* ---- A tile's results: n of 32 ------------------------------------------------------- */

static inline void burin_store_f32(float *restrict y, const float *restrict x, int n)
{
    memcpy(y, x, (size_t)n * sizeof *y);
}

static inline void burin_add_f32(float *restrict y, const float *restrict x, int n)
{
    for (int i = 0; i < n; i++)
        y[i] += x[i];
}

static inline void burin_store_bf16(uint16_t *restrict y, const float *restrict x, int n)
{
    for (int i = 0; i < n; i++)
        y[i] = burin_bf16_of_f32(x[i]);
}

/* Group g of an int8 row of k, whole. */
static inline void burin_store_q8(
        uint8_t *restrict row, const float *restrict x, int g, int k)
{
    burin_q8_group(
            (int8_t *)row + g * 32, burin_q8_scales(row, k) + g, burin_q8_sums(row, k) + g,
            x);
}

/* ---- Who takes which tiles ----------------------------------------------------------- */

/* A thread's part of n tiles: [begin, begin + chunk) and then every `step` tiles, up to end.
 * Few tiles: one adjacent share. Many: chunks dealt out in turn, because two threads that
 * read one region together get 31-32 GB/s from memory and two far halves 26. */
struct burin_deal {
    int begin;
    int end;
    int chunk;
    int step;
};

static inline struct burin_deal burin_deal(const struct burin_team *t, int n, int chunk)
{
    if (t->n_threads == 1 || n / chunk < 8 * t->n_threads) {
        const struct burin_share share = burin_share(t, n);
        return (struct burin_deal){ share.begin, share.end, n, n > 0 ? n : 1 };
    }
    return (struct burin_deal){ t->thread * chunk, n, chunk, t->n_threads * chunk };
}

/* Some choices of one expert that are multiplied together. */
struct burin_expert_part {
    int index; /* of all parts; -1 before the first */
    int expert;
    int first; /* of the choices, by expert */
    int n_rows;
};

static inline int burin_expert_parts(const int32_t *begin, int n_experts, int rows)
{
    int n = 0;
    for (int e = 0; e < n_experts; e++)
        n += (begin[e + 1] - begin[e] + rows - 1) / rows;
    return n;
}

/* The next part, of up to `rows`; there must be one. */
static inline void burin_expert_part_next(
        struct burin_expert_part *part, const int32_t *begin, int rows)
{
    part->first += part->n_rows;
    while (part->first == begin[part->expert + 1])
        part->expert++;
    const int left = begin[part->expert + 1] - part->first;
    part->n_rows = left < rows ? left : rows;
    part->index++;
}

/* The sum of 32 partial sums, in an order that vectors of any width can follow. */
static inline float burin_fold32(float *part)
{
    for (int width = 16; width > 0; width /= 2)
        for (int lane = 0; lane < width; lane++)
            part[lane] += part[lane + width];
    return part[0];
}

static inline int burin_min(int a, int b)
{
    return a < b ? a : b;
}

/* Kernels take 8, 4, 2 or 1 rows at once: how many of the n that are left. */
static inline int burin_rows_at_once(int n)
{
    return n >= 8 ? 8 : n >= 4 ? 4 : n >= 2 ? 2 : 1;
}

#endif
