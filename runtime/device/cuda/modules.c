/* runtime/device/cuda/modules.c -- Kernels of a family onto a device: compiled, loaded, and
 * each one's function ready to be launched. */
#include "runtime/device/cuda/errors.h"
#include "runtime/device/cuda/parts.h"

#include <string.h>

/* The driver did not take this code, which other code of the same text may mend. */
static bool is_refusal(int result)
{
    return result == CU_INVALID_IMAGE || result == CU_NO_BINARY_FOR_GPU;
}

/* A kernel needs no more than a block of this device may have. */
static enum burin_status check_shared(
        const struct burin_cuda *cuda,
        const struct burin_kernel *kernel,
        struct burin_cu_function *function,
        struct burin_error *err)
{
    const struct burin_driver *driver = cuda->driver;
    int fixed = 0;
    enum burin_status status = burin_cuda_check(
            driver, err,
            driver->cuFuncGetAttribute(&fixed, CU_FUNCTION_STATIC_SHARED_BYTES, function),
            "cuFuncGetAttribute", "the shared memory of kernel %s", kernel->name);
    if (status)
        return status;
    if (fixed + kernel->shared_bytes > cuda->found.max_shared_bytes)
        return burin_fail(
                err, BURIN_ELIMIT,
                "kernel %s needs %d bytes of shared memory, a block of %s has %d",
                kernel->name, fixed + kernel->shared_bytes, cuda->found.name,
                cuda->found.max_shared_bytes);
    if (kernel->shared_bytes == 0)
        return BURIN_OK;
    return burin_cuda_check(
            driver, err,
            driver->cuFuncSetAttribute(
                    function, CU_FUNCTION_MAX_DYNAMIC_SHARED_BYTES, kernel->shared_bytes),
            "cuFuncSetAttribute", "%d bytes of shared memory for kernel %s",
            kernel->shared_bytes, kernel->name);
}

static enum burin_status check_function(
        struct burin_cuda *cuda,
        const struct burin_kernel *kernel,
        struct burin_cu_function *function,
        struct burin_error *err)
{
    const struct burin_driver *driver = cuda->driver;
    int local = 0;
    int threads = 0;
    enum burin_status status = burin_cuda_check(
            driver, err,
            driver->cuFuncGetAttribute(&local, CU_FUNCTION_LOCAL_BYTES, function),
            "cuFuncGetAttribute", "the local memory of kernel %s", kernel->name);
    if (!status)
        status = burin_cuda_check(
                driver, err,
                driver->cuFuncGetAttribute(&threads, CU_FUNCTION_MAX_THREADS, function),
                "cuFuncGetAttribute", "the threads of kernel %s", kernel->name);
    if (status)
        return status;
    if (kernel->threads > threads)
        return burin_fail(
                err, BURIN_ELIMIT,
                "kernel %s runs in blocks of %d threads, %s has registers for %d of them",
                kernel->name, kernel->threads, cuda->found.name, threads);
    if (local > cuda->local_bytes)
        cuda->local_bytes = local;
    return check_shared(cuda, kernel, function, err);
}

/* Load one kernel's code. *refused: the driver does not take it. */
static enum burin_status load_kernel(
        struct burin_cuda *cuda,
        int number,
        const struct burin_compiled *compiled,
        bool *refused,
        struct burin_error *err)
{
    const struct burin_driver *driver = cuda->driver;
    const struct burin_kernel *kernel = &cuda->code->kernels[number];
    struct burin_cu_module *module = NULL;
    struct burin_cu_function *function = NULL;

    const int result = driver->cuModuleLoadData(&module, compiled->bytes);
    *refused = is_refusal(result);
    enum burin_status status = burin_cuda_check(
            driver, err, result, "cuModuleLoadData", "kernel %s, %zu bytes that were %s",
            kernel->name, compiled->n_bytes,
            compiled->origin == BURIN_EMBEDDED ? "embedded in the binary"
            : compiled->origin == BURIN_CACHED ? "in the cache"
                                               : "just compiled");
    if (status)
        return status;
    cuda->modules[cuda->n_modules++] = module;
    status = burin_cuda_check(
            driver, err, driver->cuModuleGetFunction(&function, module, kernel->name),
            "cuModuleGetFunction", "kernel %s", kernel->name);
    cuda->functions[number] = function;
    return status ? status : check_function(cuda, kernel, function, err);
}

/* Compile one kernel again, whatever is embedded or cached, and load that. */
static enum burin_status load_anew(
        struct burin_cuda *cuda,
        int number,
        struct burin_compiling compiling,
        struct burin_compiled *compiled,
        struct burin_arena *arena,
        struct burin_error *err)
{
    struct burin_compile_counts counts;
    bool refused = false;
    bool *wanted = BURIN_TAKE(arena, (size_t)cuda->code->n_kernels, bool);
    if (!wanted)
        return burin_fail(err, BURIN_ENOMEM, "no host memory for a list of kernels");
    wanted[number] = true;
    compiling.anew = true;
    compiling.progress = NULL;
    const enum burin_status status = burin_compile(
            cuda->code, wanted, burin_arch_of(cuda->found.sm).name, &compiling, arena,
            compiled, &counts, err);
    return status ? status : load_kernel(cuda, number, &compiled[number], &refused, err);
}

/* A kernel as it was found, or compiled anew where the driver refuses that; what it said is
 * the error where there is nothing to compile with. */
static enum burin_status load_or_mend(
        struct burin_cuda *cuda,
        int number,
        struct burin_compiling *compiling,
        struct burin_compiled *compiled,
        struct burin_compile_counts *counts,
        struct burin_arena *arena,
        struct burin_error *err)
{
    const enum burin_origin origin = compiled[number].origin;
    struct burin_error refusal = { .status = BURIN_OK };
    bool refused = false;
    enum burin_status status =
            load_kernel(cuda, number, &compiled[number], &refused, &refusal);
    if (status && refused && origin != BURIN_COMPILED) {
        struct burin_error mending = { .status = BURIN_OK };
        const enum burin_status mended =
                load_anew(cuda, number, *compiling, compiled, arena, &mending);
        if (mended != BURIN_EMISSING) {
            status = mended;
            refusal = mending;
        }
        counts->n_compiled += !mended;
        counts->n_cached -= !mended && origin == BURIN_CACHED;
        counts->n_embedded -= !mended && origin == BURIN_EMBEDDED;
    }
    if (status && err)
        *err = refusal;
    return status;
}

static enum burin_status load_all(
        struct burin_cuda *cuda,
        const bool *wanted,
        struct burin_compiling *compiling,
        struct burin_compiled *compiled,
        struct burin_compile_counts *counts,
        struct burin_arena *arena,
        struct burin_error *err)
{
    enum burin_status status = BURIN_OK;
    for (int i = 0; i < cuda->code->n_kernels && !status; i++)
        if (wanted[i])
            status = load_or_mend(cuda, i, compiling, compiled, counts, arena, err);
    return status;
}

enum burin_status burin_cuda_load(
        struct burin_cuda *cuda,
        const struct burin_cuda_code *code,
        struct burin_compiling *compiling,
        struct burin_compile_counts *counts,
        struct burin_error *err)
{
    const size_t n = (size_t)code->n_kernels;
    struct burin_arena images = { 0 };
    struct burin_compiled *compiled = BURIN_TAKE(&images, n, struct burin_compiled);
    bool *wanted = BURIN_TAKE(&images, n, bool);
    cuda->code = code;
    cuda->functions = BURIN_TAKE(&cuda->arena, n, void *);
    cuda->modules = BURIN_TAKE(&cuda->arena, n, struct burin_cu_module *);

    if (!compiled || !wanted || !cuda->functions || !cuda->modules) {
        burin_arena_close(&images);
        return burin_fail(err, BURIN_ENOMEM, "no host memory for a list of %zu kernels", n);
    }
    for (size_t i = 0; i < n; i++)
        wanted[i] = !code->kernels[i].fast_gemm || cuda->multiplier;
    enum burin_status status = burin_compile(
            code, wanted, burin_arch_of(cuda->found.sm).name, compiling, &images, compiled,
            counts, err);
    if (!status)
        status = load_all(cuda, wanted, compiling, compiled, counts, &images, err);
    burin_arena_close(&images);
    return status;
}
