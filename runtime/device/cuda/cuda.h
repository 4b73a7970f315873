/* runtime/device/cuda/cuda.h -- An NVIDIA GPU as a device: streams, memory, kernels,
 * graphs.
 *
 *     burin_driver_open(&driver, err);                 // open.h, or a virtual GPU's table
 *     burin_cuda_open(&cuda, &driver, index, err);     // looks at the device, touches
 *     nothing burin_cuda_context(&cuda, err);                  // from here on it takes
 *     memory burin_cuda_load(&cuda, code, &loading, err);     // all kernels
 *     burin_cuda_local(&cuda, err);                    // and what their stacks need
 *     ... queues, a ledger, graphs of device.h ...
 *     burin_cuda_close(&cuda);                         // after all of these
 *
 * Steps    Each is a function, so that start-up can read the free memory around it.
 * Memory   Device memory is made by cuMemCreate() in granules and mapped: addresses are
 *          reserved first, and may get their memory later. Where a platform lacks that,
 *          ops->reserve is NULL and memory is what cuMemAlloc() gives.
 *          The host's part (the account of what is mapped, names) lies in `arena`.
 * Queues   A queue is a stream of its own. A run enqueues kernels and returns.
 * Errors   BURIN_ENOMEM where memory is short, BURIN_EIO for what else the driver refuses.
 *          A kernel's fault shows in a later call, and in all that follow it.
 * Threads  One at a time; one that has not called burin_cuda_context() calls
 *          burin_cuda_use() first. */
#ifndef BURIN_DEVICE_CUDA_CUDA_H
#define BURIN_DEVICE_CUDA_CUDA_H

#include "runtime/base/arena.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/compile.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/device.h"
#include "runtime/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What can be known of a device without a context on it. */
struct burin_cuda_found {
    int index; /* as cuDeviceGet() counts */
    int device;
    char name[96]; /* "NVIDIA GeForce RTX 4090" */
    char uuid[48]; /* "GPU-4a6bcb2c-..." */
    char pci[24];  /* "0000:01:00.0" */
    int sm;        /* 89: of compute capability 8.9 */
    size_t total;  /* bytes */
    int n_multiprocessors;
    int threads_per_multiprocessor;
    int max_shared_bytes; /* of a block */
    bool has_vmm;         /* addresses without memory */
    bool integrated;      /* its memory is the host's */
};

struct burin_cuda_mapping; /* private: memory.c */
struct burin_multiplier;   /* private: multiply.c */

struct burin_cuda {
    struct burin_device device;
    const struct burin_driver *driver;
    struct burin_cuda_found found; /* has_vmm may be cleared before burin_cuda_context() */
    const struct burin_cuda_code *code;
    void **functions; /* CUfunction of each kernel of code */
    int local_bytes;  /* of a thread, the most that a kernel needs */
    bool one_by_one;  /* $BURIN_CUDA_SYNC=1: wait for each kernel, so that it is named */

    /* Private. */
    struct burin_arena arena;
    struct burin_cu_context *context;
    struct burin_cu_stream *stream; /* of our own: zeroing, and the clock of events */
    struct burin_cu_module **modules;
    int n_modules;
    struct burin_cuda_mapping *mappings;
    struct burin_cuda_mapping *spare_mappings;
    struct burin_cu_event *clock; /* the event that event times are counted from */
    double clock_ms;              /* and its own time */
    bool capturing;
    int n_captured;                      /* kernels of the capture so far */
    struct burin_multiplier *multiplier; /* multiply.c; NULL without --fast-gemm */
};

enum burin_status burin_cuda_count(
        const struct burin_driver *driver, int *n, struct burin_error *err);

/* BURIN_EUSAGE where there is no device number `index`. */
enum burin_status burin_cuda_find(
        const struct burin_driver *driver,
        int index,
        struct burin_cuda_found *found,
        struct burin_error *err);

/* The driver's table stays in place until burin_cuda_close(), and so does the struct. */
enum burin_status burin_cuda_open(
        struct burin_cuda *cuda,
        const struct burin_driver *driver,
        int index,
        struct burin_error *err);

/* Make the device's context, with the least room for printf and malloc in kernels, and a
 * stream of our own; the granule is known then. */
enum burin_status burin_cuda_context(struct burin_cuda *cuda, struct burin_error *err);

/* Let this thread, too, use the device. */
enum burin_status burin_cuda_use(struct burin_cuda *cuda, struct burin_error *err);

/* Let cuBLASLt do plain dense products of many rows in runs whose BURIN_FAST_GEMM is 1: before
 * the kernels are loaded, since it needs some of its own. A result's bits may depend on the
 * number of rows then. Graphs keep our kernels, and so does a virtual GPU that nothing was
 * opened for. The library is taken over, opened or not. BURIN_EMISSING where it is not there. */
struct burin_cublaslt;
enum burin_status burin_cuda_fast_gemm(
        struct burin_cuda *cuda, struct burin_cublaslt *library, struct burin_error *err);

/* Compile (compile.h) for this device and load all kernels of `code`, which stays in place.
 * BURIN_ELIMIT where the device has too little shared memory or too few registers for one.
 * */
enum burin_status burin_cuda_load(
        struct burin_cuda *cuda,
        const struct burin_cuda_code *code,
        struct burin_compiling *compiling,
        struct burin_compile_counts *counts,
        struct burin_error *err);

/* Set the stack of a thread to what the kernels need: the driver keeps it for every thread
 * that may run at once. `bytes` is how much that is. */
enum burin_status burin_cuda_local(
        struct burin_cuda *cuda, size_t *bytes, struct burin_error *err);

/* Host memory that a copy need not be staged from: page-locked. NULL bytes closed do
 * nothing. */
enum burin_status burin_cuda_pin(
        struct burin_cuda *cuda,
        size_t bytes,
        const char *owner,
        void **memory,
        struct burin_error *err);
void burin_cuda_unpin(struct burin_cuda *cuda, void *memory);

/* Give the context back, and with it all that is left on it. A zeroed struct, or one of
 * which a step has failed, may be closed. */
void burin_cuda_close(struct burin_cuda *cuda);

#endif
