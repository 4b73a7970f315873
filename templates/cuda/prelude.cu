/* The vocabulary of the kernels: short floats, the tensor cores' product, copies that run
 * beside the threads, sums over a warp and a block.   templates/cuda/prelude.cu
 *
 * Under NVRTC each wrapper of an instruction is the instruction. Elsewhere the same names
 * must be there already: tests compile the kernels for the host. Instructions are those of
 * compute capability 8.0, which every later card runs: PTX ISA 8.0, sections 9.7.8 (cp.async),
 * 9.7.9 (cvt), 9.7.13 (mma). */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#ifdef __CUDACC_RTC__
#define DEVICE static __device__ __forceinline__
#define DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) type name[]

/* Two floats as bf16, the first in the lower half; to nearest, ties to even. */
DEVICE u32 pack_bf16(float low, float high)
{
    u32 pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

DEVICE float half_float(u16 half)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(half));
    return x;
}

/* d (16, 8) += a (16, 16) b (16, 8), all 32 lanes together. With g = lane / 4, q = lane % 4:
 *   a[0] (g, 2q), a[1] (g + 8, 2q), a[2] (g, 2q + 8), a[3] (g + 8, 2q + 8): each with its
 *   right neighbour; b[0] (2q, g), b[1] (2q + 8, g): each with the one below;
 *   d[0] (g, 2q), d[1] (g, 2q + 1), d[2] (g + 8, 2q), d[3] (g + 8, 2q + 1). */
DEVICE void mma_bf16(float *d, const u32 *a, const u32 *b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* 16 bytes into shared memory, while the thread goes on; both addresses are multiples of 16.
 * What was begun since the last commit is a group. */
DEVICE void copy_async_16(void *shared, const void *global)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                         (u32)__cvta_generic_to_shared(shared)),
                 "l"(global)
                 : "memory");
}

DEVICE void copy_async_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Until at most N of this thread's groups are still under way. Others see what came only
 * behind __syncthreads(). */
template <int N> DEVICE void copy_async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
#endif

/* ---- Short floats ------------------------------------------------------------------ */

DEVICE float bf16_float(u16 x)
{
    return __uint_as_float((u32)x << 16);
}

DEVICE u16 float_bf16(float x)
{
    return (u16)pack_bf16(x, 0.0f);
}

DEVICE float low_bf16(u32 pair)
{
    return __uint_as_float(pair << 16);
}

DEVICE float high_bf16(u32 pair)
{
    return __uint_as_float(pair & 0xffff0000u);
}

/* Rows are bf16 or floats: a kernel's text is the same for both. */
DEVICE float load_float(const u16 *x, size_t i)
{
    return bf16_float(x[i]);
}

DEVICE float load_float(const float *x, size_t i)
{
    return x[i];
}

DEVICE void store_float(u16 *y, size_t i, float value)
{
    y[i] = float_bf16(value);
}

DEVICE void store_float(float *y, size_t i, float value)
{
    y[i] = value;
}

/* ---- Sums and maxima ----------------------------------------------------------------- */

/* Every lane gets it; the order of the sum is that of the butterfly. */
DEVICE float warp_sum(float x)
{
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

DEVICE float warp_max(float x)
{
    for (int step = 16; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

/* Over all threads of a block of THREADS, a multiple of 32; every thread gets it. */
template <int THREADS> DEVICE float block_sum(float x)
{
    __shared__ float part[THREADS / 32];

    x = warp_sum(x);
    if (THREADS == 32)
        return x;
    __syncthreads(); /* part may still be read from the sum before */
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = x;
    __syncthreads();
    float sum = part[0];
    for (int i = 1; i < THREADS / 32; i++)
        sum += part[i];
    return sum;
}

template <int THREADS> DEVICE float block_max(float x)
{
    __shared__ float part[THREADS / 32];

    x = warp_max(x);
    if (THREADS == 32)
        return x;
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = x;
    __syncthreads();
    float most = part[0];
    for (int i = 1; i < THREADS / 32; i++)
        most = fmaxf(most, part[i]);
    return most;
}

/* ---- Angles --------------------------------------------------------------------------- */

/* Sine and cosine of radians up to 2^22, to 1e-7. CUDA's own sinf keeps
 * a table on the stack for large angles. What is left of whole half turns is taken in three
 * parts of pi / 2 (Cody and Waite 1980), so that it is exact enough; then the polynomials that
 * minimize the largest error on +-pi / 4 (Moshier's Cephes, sinf and cosf). */
DEVICE void sin_cos(float angle, float *sine, float *cosine)
{
    const float turns = rintf(angle * 0.636619772f); /* quarter turns: 2 / pi */
    float r = fmaf(turns, -1.57079637e+00f, angle);
    r = fmaf(turns, 4.37113883e-08f, r);
    r = fmaf(turns, 1.71512451e-15f, r);
    const float r2 = r * r;
    float s = fmaf(r2, -1.9515295891e-4f, 8.3321608736e-3f);
    s = fmaf(s, r2, -1.6666654611e-1f);
    s = fmaf(s * r2, r, r);
    float c = fmaf(r2, 2.443315711809948e-5f, -1.388731625493765e-3f);
    c = fmaf(c, r2, 4.166664568298827e-2f);
    c = fmaf(c, r2 * r2, fmaf(r2, -0.5f, 1.0f));
    const int quarter = (int)turns;
    const float a = quarter & 1 ? c : s;
    const float b = quarter & 1 ? s : c;
    *sine = quarter & 2 ? -a : a;
    *cosine = (quarter + 1) & 2 ? -b : b;
}
