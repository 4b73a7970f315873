/* runtime/device/cuda/launch.h -- What emitted host programs call: put one kernel on a stream.
 *
 * Errors   The first one is kept in stream->failure; later launches do nothing. Who enqueued
 *          a program asks burin_stream_status() behind it.
 * Memory   Arguments are copied before the return.
 * Threads  One for a stream. */
#ifndef BURIN_DEVICE_CUDA_LAUNCH_H
#define BURIN_DEVICE_CUDA_LAUNCH_H

#include "runtime/base/status.h"
#include "runtime/model.h"

#include <stdbool.h>
#include <stdint.h>

struct burin_cuda;
struct burin_multiplier; /* private: multiply.c */

/* What has gone wrong on a stream. */
struct burin_stream_failure {
    enum burin_status status;
    struct burin_error error;
};

struct burin_stream {
    struct burin_cuda *cuda;
    void *handle;           /* CUstream */
    void *const *functions; /* CUfunction of each kernel of the family's burin_cuda_code */
    struct burin_stream_failure *failure;
    struct burin_multiplier *multiplier; /* NULL: every product is our kernels' */
};

struct burin_blocks {
    int x, y, z;
};

/* Run kernel number `kernel` on so many blocks of `threads`, each with `shared` bytes of dynamic
 * shared memory. args[i] points to argument i: a device address (8 bytes) or an int. Without
 * blocks nothing is run. */
void burin_launch(
        const struct burin_stream *stream,
        int kernel,
        struct burin_blocks blocks,
        int threads,
        int shared,
        void **args);

/* y = x w', or y += x w', with rows that lie one behind the other; y's begin y_stride elements
 * apart. x is bf16. Addresses are the device's. */
struct burin_product {
    int unpack; /* the kernel that leaves w in scratch, as bf16 and row by row */
    struct burin_blocks unpack_blocks;
    int unpack_threads;
    const void *y; /* (n_rows, n_out) */
    int y_stride;
    const void *x;      /* (n_rows, k) */
    const void *weight; /* (n_out, k), packed */
    int n_out;
    int k;
    int n_rows;
    enum burin_dtype y_dtype;
    bool adds;
    const void *scratch; /* room for w and what cuBLASLt works in */
    int scratch_bytes;
};

/* Let cuBLASLt do a product, where it may (--fast-gemm) and there are rows enough. false: it was
 * not done. True where it has failed, too. */
bool burin_fast_product(
        const struct burin_stream *stream, const struct burin_product *product);

/* The first failure since the last call, into `err`. */
enum burin_status burin_stream_status(
        const struct burin_stream *stream, struct burin_error *err);

#endif
