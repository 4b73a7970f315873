/* tests/gpu/host.h -- What kernels find on a GPU, for g++: a kernel's text, compiled behind this
 * header, runs on the CPU.
 *
 *   g++ -std=c++17 -include tests/gpu/host.h KERNEL.cpp      then fibers.h launches it
 *
 * A CUDA thread is a fiber (fibers.cpp). Lanes of a warp meet in collectives: each leaves its
 * operands, the last one computes for all. Only what compiles with NVRTC without any header is
 * here, and the host bodies of the prelude's PTX wrappers; all else stands in templates/cuda.
 *
 * Memory   __shared__ is static memory, filled with NaN before each block; one block runs at a
 *          time. Shared memory is all that a kernel's file may have of zeroed memory (.bss).
 * Bits     Conversions are those of the GPU. mma and the functions of libm may differ in the
 *          last bit from what a GPU gives.
 * Threads  One launch at a time in a process; fibers.cpp holds a lock. */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef __SIZE_TYPE__ size_t;

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __constant__ static const
#define __shared__ static
#ifndef HOST_NO_KERNELS /* the standard library writes attributes so */
#define __noinline__ __attribute__((noinline))
#endif

/* ---- Vectors -------------------------------------------------------------------------- */

struct uint3 {
    unsigned x, y, z;
};

#define HOST_VECTORS(type, name)                                                           \
    struct alignas(2 * sizeof(type)) name##2                                               \
    {                                                                                      \
        type x, y;                                                                         \
    };                                                                                     \
    struct alignas(4 * sizeof(type)) name##4                                               \
    {                                                                                      \
        type x, y, z, w;                                                                   \
    };                                                                                     \
    static inline name##2 make_##name##2(type x, type y)                                   \
    {                                                                                      \
        return name##2 { x, y };                                                           \
    }                                                                                      \
    static inline name##4 make_##name##4(type x, type y, type z, type w)                   \
    {                                                                                      \
        return name##4 { x, y, z, w };                                                     \
    }
HOST_VECTORS(float, float)
HOST_VECTORS(int, int)
HOST_VECTORS(unsigned, uint)
HOST_VECTORS(unsigned short, ushort)
#undef HOST_VECTORS

/* ---- Threads: fibers.cpp ---------------------------------------------------------------- */

struct fiber_place { /* what a thread sees of itself */
    uint3 thread;
    int lane; /* in its warp */
    int warp; /* in its block */
};

/* `line` is where the kernel calls: in reports, and lanes must meet in the same one. */
extern "C" {
extern struct fiber_place *fiber_current;
extern uint3 fiber_block, fiber_block_dim, fiber_grid_dim;

void fiber_sync_threads(int line);
void fiber_sync_warp(u32 mask, int line);
u32 fiber_shuffle(u32 mask, u32 value, int from_lane, int line);
u32 fiber_ballot(u32 mask, int predicate, int line);
void fiber_mma_bf16(float d[4], const u32 a[4], const u32 b[2], int line);
void fiber_copy_16(void *shared, const void *global, int line);
void fiber_copy_commit(void);
void fiber_copy_wait(int n_groups_left);
void *fiber_dynamic_shared(void);
}

#define threadIdx (fiber_current->thread)
#define blockIdx fiber_block
#define blockDim fiber_block_dim
#define gridDim fiber_grid_dim
#define warpSize 32

static inline void __syncthreads(int line = __builtin_LINE())
{
    fiber_sync_threads(line);
}

static inline void __syncwarp(u32 mask = 0xffffffffu, int line = __builtin_LINE())
{
    fiber_sync_warp(mask, line);
}

/* A value of four or eight bytes, from another lane. */
template <class T> static inline T host_shuffle(u32 mask, T value, int from_lane, int line)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles move 4 or 8 bytes");
    u32 part[sizeof(T) / 4];
    __builtin_memcpy(part, &value, sizeof(T));
    for (u32 &bits : part)
        bits = fiber_shuffle(mask, bits, from_lane, line);
    __builtin_memcpy(&value, part, sizeof(T));
    return value;
}

template <class T>
static inline T __shfl_sync(
        u32 mask, T value, int from, int width = 32, int line = __builtin_LINE())
{
    const int lane = fiber_current->lane;
    return host_shuffle(mask, value, (lane & ~(width - 1)) | (from & (width - 1)), line);
}

template <class T>
static inline T __shfl_xor_sync(
        u32 mask, T value, int bits, int width = 32, int line = __builtin_LINE())
{
    const int lane = fiber_current->lane, from = lane ^ bits;
    const bool inside = (from & ~(width - 1)) <= (lane & ~(width - 1));
    return host_shuffle(mask, value, inside ? from : lane, line);
}

template <class T>
static inline T __shfl_down_sync(
        u32 mask, T value, unsigned by, int width = 32, int line = __builtin_LINE())
{
    const int lane = fiber_current->lane;
    const bool inside = (lane & (width - 1)) + (int)by < width;
    return host_shuffle(mask, value, inside ? lane + (int)by : lane, line);
}

template <class T>
static inline T __shfl_up_sync(
        u32 mask, T value, unsigned by, int width = 32, int line = __builtin_LINE())
{
    const int lane = fiber_current->lane;
    const bool inside = (lane & (width - 1)) >= (int)by;
    return host_shuffle(mask, value, inside ? lane - (int)by : lane, line);
}

static inline u32 __ballot_sync(u32 mask, int predicate, int line = __builtin_LINE())
{
    return fiber_ballot(mask, predicate, line);
}

static inline int __any_sync(u32 mask, int predicate, int line = __builtin_LINE())
{
    return fiber_ballot(mask, predicate, line) != 0;
}

static inline int __all_sync(u32 mask, int predicate, int line = __builtin_LINE())
{
    return fiber_ballot(mask, !predicate, line) == 0;
}

/* ---- Bits and numbers ------------------------------------------------------------------- */

static inline u32 __float_as_uint(float x)
{
    u32 bits;
    __builtin_memcpy(&bits, &x, 4);
    return bits;
}

static inline float __uint_as_float(u32 bits)
{
    float x;
    __builtin_memcpy(&x, &bits, 4);
    return x;
}

static inline int __float_as_int(float x)
{
    return (int)__float_as_uint(x);
}

static inline float __int_as_float(int bits)
{
    return __uint_as_float((u32)bits);
}

static inline int __popc(u32 x)
{
    return __builtin_popcount(x);
}

static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}

static inline int __clz(int x)
{
    return x ? __builtin_clz((u32)x) : 32;
}

template <class T> static inline T __ldg(const T *p)
{
    return *p;
}

static inline int atomicAdd(int *p, int x)
{
    return __atomic_fetch_add(p, x, __ATOMIC_RELAXED);
}

static inline u32 atomicAdd(u32 *p, u32 x)
{
    return __atomic_fetch_add(p, x, __ATOMIC_RELAXED);
}

static inline int min(int a, int b)
{
    return a < b ? a : b;
}

static inline int max(int a, int b)
{
    return a > b ? a : b;
}

static inline u32 min(u32 a, u32 b)
{
    return a < b ? a : b;
}

static inline u32 max(u32 a, u32 b)
{
    return a > b ? a : b;
}

#define HOST_MATH(name) float name(float) noexcept;
extern "C" {
HOST_MATH(ceilf)
HOST_MATH(cosf)
HOST_MATH(erff)
HOST_MATH(exp2f)
HOST_MATH(expf)
HOST_MATH(fabsf)
HOST_MATH(floorf)
HOST_MATH(log2f)
HOST_MATH(logf)
HOST_MATH(rintf)
HOST_MATH(roundf)
HOST_MATH(sinf)
HOST_MATH(sqrtf)
HOST_MATH(tanhf)
HOST_MATH(truncf)
float fmaf(float, float, float) noexcept;
float fmaxf(float, float) noexcept;
float fminf(float, float) noexcept;
float powf(float, float) noexcept;
}
#undef HOST_MATH

static inline float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}

/* ---- Host bodies of the prelude's wrappers ---------------------------------------------- */

#define DEVICE static inline __attribute__((always_inline, unused))

/* cvt.rn.bf16.f32: to nearest, ties to even; every NaN becomes 0x7fff. */
static inline u16 host_bf16(float x)
{
    const u32 bits = __float_as_uint(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return 0x7fff;
    return (u16)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

/* cvt.rn.bf16x2.f32: two of them, `low` in the low half. */
static inline u32 pack_bf16(float low, float high)
{
    return host_bf16(low) | (u32)host_bf16(high) << 16;
}

/* cvt.f32.f16: exact. Numbers below 2^-14 are multiples of 2^-24. */
static inline float half_float(u16 half)
{
    const u32 sign = (u32)(half & 0x8000u) << 16;
    const u32 exponent = half >> 10 & 31, fraction = half & 1023u;
    if (exponent == 0) {
        const float x = (float)fraction * 0x1p-24f;
        return sign ? -x : x;
    }
    if (exponent == 31)
        return __uint_as_float(fraction ? 0x7fffffffu : sign | 0x7f800000u);
    return __uint_as_float(sign | (exponent + 112) << 23 | fraction << 13);
}

/* d += a b of the whole warp: a (16, 16), b (16, 8), d (16, 8); with g = lane / 4 and
 * c = 2 (lane % 4), a lane holds
 *     a[0], a[1]: rows g, g + 8, columns c and c + 1; a[2], a[3]: those rows, columns c + 8, c + 9
 *     b[0]: rows c and c + 1 of column g; b[1]: rows c + 8 and c + 9
 *     d[0], d[1]: row g, columns c and c + 1; d[2], d[3]: row g + 8                           */
static inline void mma_bf16(
        float d[4], const u32 a[4], const u32 b[2], int line = __builtin_LINE())
{
    fiber_mma_bf16(d, a, b, line);
}

/* cp.async: 16 bytes, both ends aligned to 16; it happens at any time until it is waited for. */
static inline void copy_async_16(
        void *shared, const void *global, int line = __builtin_LINE())
{
    fiber_copy_16(shared, global, line);
}

static inline void copy_async_commit(void)
{
    fiber_copy_commit();
}

/* Until at most N of the latest groups are under way. */
template <int N> static inline void copy_async_wait(void)
{
    fiber_copy_wait(N);
}

#define DYNAMIC_SHARED(T, name) T *const name = (T *)fiber_dynamic_shared()

/* ---- How a launch finds a kernel -------------------------------------------------------- */

/* One kernel of a file. Its arguments come as cuLaunchKernel takes them: pointers to each. */
struct fiber_kernel {
    const char *name;
    void (*call)(void **args);
    int n_args;
    const u16 *arg_bytes;
    char *shared_begin, *shared_end; /* the file's shared memory: .bss */
    int max_threads;                 /* of its __launch_bounds__ */
};

#ifndef HOST_NO_KERNELS
extern "C" {
extern char __bss_start[] __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));
}

template <int...> struct host_indices {
};
template <int N, int... I> struct host_count : host_count<N - 1, N - 1, I...> {
};
template <int... I> struct host_count<0, I...> {
    typedef host_indices<I...> type;
};

template <class F> struct host_signature;
template <class... A> struct host_signature<void (*)(A...)> {
    enum { N_ARGS = sizeof...(A) };
    static constexpr u16 bytes[sizeof...(A) + 1] = { (u16)sizeof(A)..., 0 };

    template <int... I>
    static void call_with(void (*kernel)(A...), void **args, host_indices<I...>)
    {
        kernel(*(A *)args[I]...);
    }

    static void call(void (*kernel)(A...), void **args)
    {
        call_with(kernel, args, typename host_count<N_ARGS>::type());
    }
};

/* Stands behind the text of a kernel: makes it known as fiber_kernel_NAME. */
#define HOST_KERNEL(kernel, threads)                                                       \
    static void host_call_##kernel(void **args)                                            \
    {                                                                                      \
        host_signature<decltype(&kernel)>::call(kernel, args);                             \
    }                                                                                      \
    extern "C" __attribute__((visibility("default")))                                      \
    const struct fiber_kernel fiber_kernel_##kernel = {                                    \
        #kernel,                                                                           \
        host_call_##kernel,                                                                \
        host_signature<decltype(&kernel)>::N_ARGS,                                         \
        host_signature<decltype(&kernel)>::bytes,                                          \
        __bss_start,                                                                       \
        _end,                                                                              \
        threads,                                                                           \
    };
#endif
