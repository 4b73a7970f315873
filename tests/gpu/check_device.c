/* tests/gpu/check_device.c -- What only a real GPU can answer, asked through our own tables of the
 * driver and NVRTC: tools/gpu_check runs it, and a virtual GPU runs it in tests.
 *
 *   check-device device              which it is; ends with 77 where there is none
 *   check-device mapping             may memory be mapped behind addresses that a graph holds?
 *                                    What does a driver say when there is no more?
 *   check-device nodes               what a node of a graph takes of the device's memory
 *   check-device wrappers FILE       what each wrapper of templates/cuda/prelude.cu gives for random
 *                                    numbers, kept in FILE
 *   check-device wrappers FILE OTHER     and compared with what another device gave
 *
 * A line for each answer: "holds", "WRONG" or "is", a tab, what, a tab, how it was found. Ends with 1
 * where one is WRONG. */
#include "runtime/base/clock.h"
#include "runtime/device/cuda/cuda.h"
#include "runtime/device/cuda/errors.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/cuda/open.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t MIB = (size_t)1 << 20;
static const double GIB = (double)((size_t)1 << 30);

static struct burin_error err;
static struct burin_driver driver;
static struct burin_nvrtc nvrtc;
static struct burin_cuda cuda;
static struct burin_cu_stream *stream;
static int n_wrong;

static void tell(const char *how, const char *what, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

static void tell(const char *how, const char *what, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("%s\t%s\t", how, what);
    vprintf(format, arguments);
    printf("\n");
    fflush(stdout);
    va_end(arguments);
}

static const char *verdict(bool holds)
{
    n_wrong += !holds;
    return holds ? "holds" : "WRONG";
}

static void stop(const char *what)
{
    tell("WRONG", what, "%s", err.message);
    exit(1);
}

/* A driver's call that must succeed. */
static void must(int result, const char *call)
{
    const char *name = "?";
    if (!result)
        return;
    driver.cuGetErrorName(result, &name);
    tell("WRONG", call, "%s (%d)", name, result);
    exit(1);
}

#define MUST(call, ...) must(driver.call(__VA_ARGS__), #call)

/* ---- Kernels ---------------------------------------------------------------------------- */

#define KERNEL(name) "extern \"C\" __global__ __launch_bounds__(128) void " name

/* A check of wrappers: thread i of N_THREADS makes n_words words y + i * n_words out of x[2 i] and
 * x[2 i + 1]. */
enum { N_THREADS = 65536, BLOCK = 128, MAX_WORDS = 8 };
#define WRAPPER(name, body)                                                                \
    KERNEL(name)                                                                           \
    "(u32 *y, const u32 *x)\n{\n"                                                          \
    "    const u32 i = blockIdx.x * 128 + threadIdx.x, a = x[2 * i], b = x[2 * i + 1];\n"  \
    "    const float f = __uint_as_float(a), g = __uint_as_float(b);\n"                    \
    "    (void)f, (void)g, (void)a, (void)b;\n" body "}\n"

/* What the words are, and how far a GPU's may be from the host's. */
enum kind { BITS, FLOATS };

/* What x holds: any bits, any numbers, numbers of a range. */
enum input { ANY, SMALL, POSITIVE, ANGLES };

struct wrapper {
    const char *name;
    int n_words;
    enum kind kind;
    double ulps; /* of floats; of the largest word for a product */
    enum input input;
    const char *text;
};

/* CUDA C++ Programming Guide, "Mathematical functions appendix": the largest errors in ulp; the
 * host's are at most 1 themselves. A product's sum may be cut off behind 24 bits. */
static const struct wrapper wrappers[] = {
    { "pack_bf16", 1, BITS, 0, ANY,
      WRAPPER("pack_bf16_", "    y[i] = pack_bf16(f, g);\n") },
    { "half_float", 1, BITS, 0, ANY,
      WRAPPER("half_float_", "    y[i] = __float_as_uint(half_float((u16)i));\n") },
    { "bf16_float, float_bf16", 2, BITS, 0, ANY,
      WRAPPER("bf16_",
              "    y[2 * i] = __float_as_uint(bf16_float((u16)i));\n"
              "    y[2 * i + 1] = float_bf16(f);\n") },
    { "low_bf16, high_bf16", 2, BITS, 0, ANY,
      WRAPPER("halves_",
              "    y[2 * i] = __float_as_uint(low_bf16(a));\n"
              "    y[2 * i + 1] = __float_as_uint(high_bf16(a));\n") },
    { "mma_bf16", 4, FLOATS, 64, SMALL,
      WRAPPER("mma_",
              "    u32 left[4], right[2];\n"
              "    float d[4] = { f, g, f, g };\n"
              "    for (int k = 0; k < 4; k++)\n"
              "        left[k] = pack_bf16(f + (float)k, g - (float)k);\n"
              "    right[0] = pack_bf16(f, g);\n"
              "    right[1] = pack_bf16(g, f + 1.0f);\n"
              "    mma_bf16(d, left, right);\n"
              "    for (int k = 0; k < 4; k++)\n"
              "        y[4 * i + k] = __float_as_uint(d[k]);\n") },
    { "copy_async_16", 4, BITS, 0, ANY,
      WRAPPER("copy_",
              "    __shared__ __align__(16) u32 kept[2][128 * 4];\n"
              "    const int t = threadIdx.x;\n"
              "    copy_async_16(&kept[0][4 * t], x + (size_t)i / 2 * 4);\n"
              "    copy_async_commit();\n"
              "    copy_async_16(&kept[1][4 * t], x + (size_t)(i ^ 2) / 2 * 4);\n"
              "    copy_async_commit();\n"
              "    copy_async_wait<1>();\n"
              "    __syncthreads();\n"
              "    for (int k = 0; k < 2; k++)\n"
              "        y[4 * i + k] = kept[0][4 * (t ^ 5) + k];\n"
              "    copy_async_wait<0>();\n"
              "    __syncthreads();\n"
              "    for (int k = 2; k < 4; k++)\n"
              "        y[4 * i + k] = kept[1][4 * (t ^ 9) + k];\n") },
    { "warp_sum, warp_max", 2, BITS, 0, SMALL,
      WRAPPER("warps_",
              "    y[2 * i] = __float_as_uint(warp_sum(f));\n"
              "    y[2 * i + 1] = __float_as_uint(warp_max(g));\n") },
    { "block_sum, block_max", 2, BITS, 0, SMALL,
      WRAPPER("blocks_",
              "    y[2 * i] = __float_as_uint(block_sum<128>(f));\n"
              "    y[2 * i + 1] = __float_as_uint(block_max<128>(g));\n") },
    { "shuffles and votes", 5, BITS, 0, ANY,
      WRAPPER("shuffles_",
              "    y[5 * i] = __shfl_xor_sync(0xffffffffu, a, 9);\n"
              "    y[5 * i + 1] = __shfl_sync(0xffffffffu, a, 7);\n"
              "    y[5 * i + 2] = __shfl_up_sync(0xffffffffu, a, 3);\n"
              "    y[5 * i + 3] = __ballot_sync(0xffffffffu, a & 1);\n"
              "    y[5 * i + 4] = __popc(a) + 64 * __ffs((int)b);\n") },
    { "sin_cos", 2, BITS, 0, ANGLES,
      WRAPPER("sin_cos_",
              "    float s, c;\n"
              "    sin_cos(f, &s, &c);\n"
              "    y[2 * i] = __float_as_uint(s);\n"
              "    y[2 * i + 1] = __float_as_uint(c);\n") },
    { "+ * / fmaf sqrtf rintf", 6, BITS, 0, POSITIVE,
      WRAPPER("exact_",
              "    y[6 * i] = __float_as_uint(f + g);\n"
              "    y[6 * i + 1] = __float_as_uint(f * g);\n"
              "    y[6 * i + 2] = __float_as_uint(f / g);\n"
              "    y[6 * i + 3] = __float_as_uint(fmaf(f, g, -f));\n"
              "    y[6 * i + 4] = __float_as_uint(sqrtf(f));\n"
              "    y[6 * i + 5] = __float_as_uint(rintf(f));\n") },
    { "exp2f expf", 2, FLOATS, 4, SMALL,
      WRAPPER("exponents_",
              "    y[2 * i] = __float_as_uint(exp2f(f));\n"
              "    y[2 * i + 1] = __float_as_uint(expf(g));\n") },
    { "tanhf erff", 2, FLOATS, 4, SMALL,
      WRAPPER("tanhf_",
              "    y[2 * i] = __float_as_uint(tanhf(f));\n"
              "    y[2 * i + 1] = __float_as_uint(erff(g));\n") },
    { "rsqrtf logf", 2, FLOATS, 4, POSITIVE,
      WRAPPER("roots_",
              "    y[2 * i] = __float_as_uint(rsqrtf(f));\n"
              "    y[2 * i + 1] = __float_as_uint(logf(2.0f + g));\n") },
};
enum { N_WRAPPERS = sizeof wrappers / sizeof *wrappers, COUNT = N_WRAPPERS };

static struct burin_kernel kernels[N_WRAPPERS + 1];
static struct burin_cuda_code code = { .n_kernels = N_WRAPPERS + 1, .kernels = kernels };

static const char *read_prelude(void)
{
    static char text[65536];
    FILE *file = fopen("templates/cuda/prelude.cu", "rb");
    if (!file) {
        perror("templates/cuda/prelude.cu");
        exit(1);
    }
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

static void start(bool with_wrappers)
{
    static char names[N_WRAPPERS][32];
    struct burin_compiling how = { .nvrtc = &nvrtc, .n_threads = 8 };
    struct burin_compile_counts counts;
    size_t local;
    for (int i = 0; i < N_WRAPPERS; i++) {
        sscanf(strstr(wrappers[i].text, "void ") + 5, "%31[a-z0-9_]", names[i]);
        kernels[i] = (struct burin_kernel){ .name = names[i],
                                            .text = wrappers[i].text,
                                            .threads = BLOCK };
    }
    kernels[COUNT] = (struct burin_kernel){
        .name = "count",
        .text = KERNEL("count") "(int *y, int n)\n{\n"
                                "    if (threadIdx.x == 0)\n"
                                "        *y += n;\n}\n",
        .threads = BLOCK,
    };
    code.prelude = read_prelude();
    if (!with_wrappers) {
        kernels[0] = kernels[COUNT];
        code.n_kernels = 1;
    }
    if (burin_cuda_context(&cuda, &err) ||
        burin_cuda_load(&cuda, &code, &how, &counts, &err) ||
        burin_cuda_local(&cuda, &local, &err))
        stop("start");
    MUST(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
}

static void launch(int kernel, int n_blocks, void **arguments)
{
    MUST(cuLaunchKernel, cuda.functions[kernel], (unsigned)n_blocks, 1, 1, BLOCK, 1, 1, 0,
         stream, arguments, NULL);
}

/* A graph of n launches that add `add` to the int at an address, instantiated and uploaded. */
static struct burin_cu_exec *counting_graph(uint64_t address, int add, int n)
{
    struct burin_cu_graph *graph;
    struct burin_cu_exec *exec;
    void *arguments[] = { &address, &add };
    MUST(cuStreamBeginCapture_v2, stream, CU_CAPTURE_THIS_THREAD);
    for (int i = 0; i < n; i++)
        launch(0, 1, arguments);
    MUST(cuStreamEndCapture, stream, &graph);
    MUST(cuGraphInstantiateWithFlags, &exec, graph, 0);
    MUST(cuGraphUpload, exec, stream);
    MUST(cuStreamSynchronize, stream);
    MUST(cuGraphDestroy, graph);
    return exec;
}

/* ---- Mapping ----------------------------------------------------------------------------- */

static struct burin_cu_memory pinned(void)
{
    return (struct burin_cu_memory){
        .type = CU_MEMORY_PINNED,
        .location = { CU_LOCATION_DEVICE, cuda.found.device },
    };
}

static unsigned long long map_one(uint64_t address, size_t bytes)
{
    const struct burin_cu_memory memory = pinned();
    const struct burin_cu_access access = { memory.location, CU_ACCESS_READ_WRITE };
    unsigned long long handle;
    MUST(cuMemCreate, &handle, bytes, &memory, 0);
    MUST(cuMemMap, address, bytes, 0, handle, 0);
    MUST(cuMemSetAccess, address, bytes, &access, 1);
    MUST(cuMemsetD32Async, address, 5, bytes / 4, stream);
    MUST(cuStreamSynchronize, stream);
    return handle;
}

static int count_with(struct burin_cu_exec *exec, uint64_t address)
{
    int found = -1;
    MUST(cuGraphLaunch, exec, stream);
    MUST(cuMemcpyDtoHAsync_v2, &found, address, sizeof found, stream);
    MUST(cuStreamSynchronize, stream);
    return found;
}

/* The engine captures graphs whose kernels hold addresses of the KV cache that have no memory
 * yet, and maps it when it is known how much is left. */
static void check_late_mapping(void)
{
    const size_t granule = cuda.device.granule, bytes = 8 * granule;
    uint64_t base;
    MUST(cuMemAddressReserve, &base, bytes, 0, 0, 0);
    unsigned long long first = map_one(base, granule);
    const uint64_t late = base + 5 * granule + 4096;

    struct burin_cu_exec *exec = counting_graph(late, 7, 3);
    unsigned long long second = map_one(base + 5 * granule, granule);
    int found = count_with(exec, late);
    tell(verdict(found == 5 + 3 * 7), "memory mapped behind an address that a graph holds",
         "%d, %d is right", found, 5 + 3 * 7);

    MUST(cuMemUnmap, base + 5 * granule, granule);
    MUST(cuMemRelease, second);
    second = map_one(base + 5 * granule, granule);
    found = count_with(exec, late);
    tell(verdict(found == 5 + 3 * 7), "other memory mapped there, the same graph",
         "%d, %d is right", found, 5 + 3 * 7);

    MUST(cuGraphExecDestroy, exec);
    MUST(cuMemUnmap, base + 5 * granule, granule);
    MUST(cuMemRelease, second);
    MUST(cuMemUnmap, base, granule);
    MUST(cuMemRelease, first);
    MUST(cuMemAddressFree, base, bytes);
}

static size_t free_bytes(void)
{
    size_t available, total;
    MUST(cuMemGetInfo_v2, &available, &total);
    return available;
}

/* Handles of several sizes until there is no more, the largest first, as KV pages are taken. */
static void check_exhaustion(void)
{
    enum { MAX_HANDLES = 1 << 17 };
    static unsigned long long handles[MAX_HANDLES];
    const struct burin_cu_memory memory = pinned();
    const size_t before = free_bytes(), granule = cuda.device.granule;
    int n = 0;
    for (size_t bytes = 1024 * MIB; bytes >= granule; bytes /= 8) {
        const int first = n;
        const size_t left_before = free_bytes();
        const double begin_ms = burin_now_ms();
        int result = CU_OK;
        while (n < MAX_HANDLES &&
               !(result = driver.cuMemCreate(&handles[n], bytes, &memory, 0)))
            n++;
        const double ms = burin_now_ms() - begin_ms;
        const size_t left = free_bytes();
        char what[96];
        snprintf(
                what, sizeof what, "handles of %zu MiB until there is no more",
                bytes / MIB);
        tell(verdict(result == CU_OUT_OF_MEMORY), what,
             "%d in %.1f ms, then error %d; free memory fell by %.3f GiB for %.3f GiB, "
             "%.1f MiB are left",
             n - first, ms, result, (double)(left_before - left) / GIB,
             (double)(n - first) * (double)bytes / GIB, (double)left / (double)MIB);
    }
    for (int i = 0; i < n; i++)
        MUST(cuMemRelease, handles[i]);
    const size_t after = free_bytes(); /* a driver may keep page tables */
    tell(verdict(after + 64 * MIB >= before), "all of it given back",
         "%.1f MiB less are free than before",
         ((double)before - (double)after) / (double)MIB);
}

static void check_mapping(void)
{
    start(false);
    if (!cuda.found.has_vmm) {
        tell("is", "mapping", "this platform has no addresses without memory");
        return;
    }
    check_late_mapping();
    check_exhaustion();
}

/* ---- Nodes of graphs --------------------------------------------------------------------- */

static void check_nodes(void)
{
    static const int sizes[] = { 100, 1000, 5000 };
    enum { ASSUMED = 64 * 1024, COPIES = 4 };
    uint64_t address;
    start(false);
    MUST(cuMemAlloc_v2, &address, 4096);
    MUST(cuMemsetD32Async, address, 0, 1024, stream);
    struct burin_cu_exec *warm =
            counting_graph(address, 0, 1); /* what the first one takes */
    count_with(warm, address);
    for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++) {
        struct burin_cu_exec *execs[COPIES];
        const size_t before = free_bytes();
        int sum = 0;
        const double begin_ms = burin_now_ms();
        for (int k = 0; k < COPIES; k++)
            execs[k] = counting_graph(address, 1, sizes[i]);
        const double ms = burin_now_ms() - begin_ms;
        MUST(cuMemsetD32Async, address, 0, 1, stream);
        for (int k = 0; k < COPIES; k++)
            sum = count_with(execs[k], address);
        const double bytes = ((double)before - (double)free_bytes()) / (COPIES * sizes[i]);
        char what[96];
        snprintf(what, sizeof what, "%d graphs of %d nodes", COPIES, sizes[i]);
        tell(verdict(bytes <= ASSUMED && sum == COPIES * sizes[i]), what,
             "%.0f bytes a node, %d are assumed; %.2f us a node to capture, instantiate, "
             "upload",
             bytes, ASSUMED, 1e3 * ms / (COPIES * sizes[i]));
        for (int k = 0; k < COPIES; k++)
            MUST(cuGraphExecDestroy, execs[k]);
    }
    MUST(cuGraphExecDestroy, warm);
    MUST(cuMemFree_v2, address);
}

/* ---- Wrappers ---------------------------------------------------------------------------- */

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Numerical Recipes' generator; its upper bits are good ones. */
static uint32_t next_word(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}

static void fill(uint32_t *x, enum input input)
{
    uint64_t state = 12345;
    for (int i = 0; i < 2 * N_THREADS; i++) {
        const uint32_t word = next_word(&state);
        const double unit = (double)word / 4294967296.0;
        x[i] = input == ANY        ? word
               : input == SMALL    ? bits_of((float)(8 * unit - 4))
               : input == POSITIVE ? bits_of((float)exp(20 * unit - 10))
                                   : bits_of((float)(262144 * unit));
    }
}

/* How many floats lie between two, or a lot. */
static double ulps_between(uint32_t a, uint32_t b)
{
    const float x = float_of(a), y = float_of(b);
    if (isnan(x) && isnan(y))
        return 0;
    if (isnan(x) || isnan(y) || (a >> 31) != (b >> 31))
        return x == y ? 0 : 1e9;
    return fabs((double)a - (double)b);
}

static void compare(
        const struct wrapper *wrapper, const uint32_t *found, const uint32_t *other)
{
    const int n = N_THREADS * wrapper->n_words;
    double most = 0, largest = 0;
    int n_differ = 0;
    for (int i = 0; i < n; i++)
        largest = fmax(largest, fabs((double)float_of(found[i])));
    for (int i = 0; i < n; i++) {
        const bool product = wrapper->ulps > 4; /* of a sum, in ulps of what is summed */
        const double apart =
                product ? fabs((double)float_of(found[i]) - (double)float_of(other[i])) /
                                  (largest * 0x1p-24)
                : wrapper->kind == BITS ? (double)(found[i] != other[i])
                                        : ulps_between(found[i], other[i]);
        n_differ += found[i] != other[i];
        most = apart <= most ? most : apart; /* NaN is more than any */
    }
    tell(verdict(most <= wrapper->ulps), wrapper->name,
         "%d of %d words differ from the host's, by %.1f ulp at most, %.0f may be",
         n_differ, n, wrapper->kind == BITS ? 0.0 : most, wrapper->ulps);
}

static void check_wrappers(const char *path, const char *other_path)
{
    static uint32_t x[2 * N_THREADS], y[MAX_WORDS * N_THREADS], z[MAX_WORDS * N_THREADS];
    uint64_t in, out;
    FILE *file = fopen(path, "wb"), *other = other_path ? fopen(other_path, "rb") : NULL;
    if (!file || (other_path && !other)) {
        perror(file ? other_path : path);
        exit(1);
    }
    start(true);
    MUST(cuMemAlloc_v2, &in, sizeof x);
    MUST(cuMemAlloc_v2, &out, sizeof y);
    for (int i = 0; i < N_WRAPPERS; i++) {
        const size_t n = (size_t)N_THREADS * (size_t)wrappers[i].n_words;
        void *arguments[] = { &out, &in };
        fill(x, wrappers[i].input);
        MUST(cuMemcpyHtoDAsync_v2, in, x, sizeof x, stream);
        MUST(cuMemsetD32Async, out, 0xdeadbeef, n, stream);
        launch(i, N_THREADS / BLOCK, arguments);
        MUST(cuMemcpyDtoHAsync_v2, y, out, 4 * n, stream);
        MUST(cuStreamSynchronize, stream);
        if (fwrite(y, 4, n, file) != n || (other && fread(z, 4, n, other) != n)) {
            perror("wrappers");
            exit(1);
        }
        if (other)
            compare(&wrappers[i], y, z);
    }
    fclose(file);
    if (other)
        fclose(other);
    MUST(cuMemFree_v2, in);
    MUST(cuMemFree_v2, out);
}

/* ---- The command --------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (burin_driver_open(&driver, &err)) {
        fprintf(stderr, "check-device: %s\n", err.message);
        return 77;
    }
    int version = 0;
    if (burin_cuda_open(&cuda, &driver, 0, &err))
        stop("open");
    MUST(cuDriverGetVersion, &version);

    if (strcmp(what, "device") == 0)
        tell("is", "device",
             "%s, sm_%d, %.1f GiB, %d multiprocessors, driver of CUDA %d.%d",
             cuda.found.name, cuda.found.sm, (double)cuda.found.total / GIB,
             cuda.found.n_multiprocessors, version / 1000, version % 1000 / 10);
    else if (strcmp(what, "mapping") == 0)
        check_mapping();
    else if (strcmp(what, "nodes") == 0)
        check_nodes();
    else if (strcmp(what, "wrappers") == 0 && argc > 2)
        check_wrappers(argv[2], argc > 3 ? argv[3] : NULL);
    else {
        fprintf(stderr, "check-device: device, mapping, nodes or wrappers FILE [OTHER]\n");
        return 2;
    }
    if (stream)
        MUST(cuStreamDestroy_v2, stream);
    burin_cuda_close(&cuda);
    burin_nvrtc_close(&nvrtc);
    burin_driver_close(&driver);
    return n_wrong > 0;
}
