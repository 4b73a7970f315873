/* The host bodies of the prelude's conversions, bit for bit: against arithmetic on doubles, and
 * against NVIDIA's headers (check_nvidia.cpp) where a toolkit has them. */
#include "tests/gpu/host.h"

#include <math.h>
#include <stdio.h>

#ifdef HAVE_NVIDIA
extern u16 nvidia_bf16(float x);
extern float nvidia_half(u16 half);
#endif

/* To 8 bits, ties to even: the current rounding of rint() is that. */
static float rounded(float x)
{
    int exponent;
    if (!isfinite(x) || x == 0.0f)
        return x;
    frexp((double)x, &exponent); /* x = m 2^exponent, m in [1/2, 1) */
    const int last =
            exponent - 8 < -133 ? -133 : exponent - 8; /* the place of the last bit */
    const double y = ldexp(rint(ldexp((double)x, -last)), last);
    return fabs(y) < 0x1p128 ? (float)y : (x < 0 ? -INFINITY : INFINITY);
}

static float half_by_parts(u16 half)
{
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    double x = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
    if (exponent == 31)
        x = fraction ? NAN : INFINITY;
    return (float)(half & 0x8000 ? -x : x);
}

static bool same(float a, float b)
{
    return (isnan(a) && isnan(b)) || __float_as_uint(a) == __float_as_uint(b);
}

static int n_wrong;

static void wrong(const char *what, float x, float found, float expected)
{
    if (n_wrong++ < 10)
        printf("%s(%a): %a, but %a is right\n", what, (double)x, (double)found,
               (double)expected);
}

static void check_bf16(float x)
{
    const u16 bits = host_bf16(x);
    const float found = __uint_as_float((u32)bits << 16);
    if (!same(found, rounded(x)))
        wrong("bf16", x, found, rounded(x));
    if (isnan(x) && bits != 0x7fff)
        wrong("bf16 of NaN", x, found, NAN);
    if (pack_bf16(x, 1.0f) != (0x3f800000u | bits) || pack_bf16(1.0f, x) >> 16 != bits)
        wrong("pack_bf16", x, found, found);
#ifdef HAVE_NVIDIA
    if (nvidia_bf16(x) != bits)
        wrong("NVIDIA's bf16", x, found, __uint_as_float((u32)nvidia_bf16(x) << 16));
#endif
}

static void check_half(u16 half)
{
    const float found = half_float(half), x = (float)half;
    if (!same(found, half_by_parts(half)))
        wrong("half", x, found, half_by_parts(half));
#ifdef HAVE_NVIDIA
    if (!same(found, nvidia_half(half)))
        wrong("NVIDIA's half", x, found, nvidia_half(half));
#endif
}

int main(void)
{
    /* Around each bf16: itself, the middle to the next one, their neighbours, some between. */
    static const u32 low[] = {
        0, 1, 0x1234, 0x7ffe, 0x7fff, 0x8000, 0x8001, 0xabcd, 0xffff
    };
    for (u32 high = 0; high < 0x10000; high++)
        for (u32 bits : low)
            check_bf16(__uint_as_float(high << 16 | bits));
    for (u32 i = 0, bits = 1; i < 2000000; i++, bits = bits * 1664525u + 1013904223u)
        check_bf16(__uint_as_float(bits));
    for (u32 half = 0; half < 0x10000; half++)
        check_half((u16)half);
#ifdef HAVE_NVIDIA
    printf("as doubles and as NVIDIA's headers have it: ");
#else
    printf("as doubles have it: ");
#endif
    printf("%d wrong\n", n_wrong);
    return n_wrong > 0;
}
