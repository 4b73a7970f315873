/* runtime/device/cuda/compile.h -- Kernels' texts to machine code: taken from the binary or
 * a cache where they are there, else compiled by NVRTC on several threads.
 *
 * Needs    No device and no driver: what is compiled is a function of text, options,
 *          architecture and NVRTC's version.
 * Options  A spill is an error. Products and sums are not contracted: a kernel's bits are
 *          what its text says, whichever kernel the text is part of; it writes fmaf().
 * Memory   Machine code lies in `arena`, or in the binary.
 * Errors   BURIN_EMISSING without NVRTC, where it is needed: it says how many kernels are
 *          not embedded; cached ones are found by NVRTC's version, and not without it.
 *          BURIN_EFORMAT for a text that does not compile.
 * Threads  Starts its own; one caller at a time. */
#ifndef BURIN_DEVICE_CUDA_COMPILE_H
#define BURIN_DEVICE_CUDA_COMPILE_H

#include "runtime/base/arena.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/nvrtc.h"
#include "runtime/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How to compile. */
struct burin_compiling {
    /* Opened when it is needed first, where `found` is empty (open.h); the caller closes
     * it. */
    struct burin_nvrtc *nvrtc;
    int driver_version; /* 13000; its NVRTC must not be newer by a whole number. 0: any */
    const char *cache;  /* folder, see cache.h; NULL: neither read nor written */
    bool anew;          /* don't read what is embedded or cached */
    int n_threads;
    bool (*progress)(void *context, int done, int total); /* false stops; may be NULL */
    void *context;
};

enum burin_origin { BURIN_EMBEDDED, BURIN_CACHED, BURIN_COMPILED };

/* One kernel. */
struct burin_compiled {
    enum burin_origin origin;
    const uint8_t *bytes;
    size_t n_bytes;
    int registers;    /* of a thread; -1 where it is embedded */
    int shared_bytes; /* static ones, of a block; likewise */
    int stack_bytes;  /* of a thread; likewise */
    bool lost;        /* compiled, and the cache could not keep it */
    double ms;
};

struct burin_compile_counts {
    int n_embedded;
    int n_cached;
    int n_compiled;
    int n_lost;     /* of these: the next start compiles them again */
    size_t n_bytes; /* of all machine code */
    double ms;
};

/* "sm_90a" for 90: the architecture's own, where it has one. */
struct burin_arch {
    char name[16];
};
struct burin_arch burin_arch_of(int sm);

/* All kernels of `code`, or those alone of which wanted[i] is true; `compiled` has a row
 * for each. `arch` is as above, or another that NVRTC knows. BURIN_ESTOPPED where
 * progress() said so. */
enum burin_status burin_compile(
        const struct burin_cuda_code *code,
        const bool *wanted,
        const char *arch,
        struct burin_compiling *compiling,
        struct burin_arena *arena,
        struct burin_compiled *compiled,
        struct burin_compile_counts *counts,
        struct burin_error *err);

/* Whether that can be done at all: BURIN_OK where all kernels are embedded, those of
 * --fast-gemm only if it is asked for, or NVRTC is there and makes code for `arch`;
 * BURIN_EMISSING as above. */
enum burin_status burin_compile_check(
        const struct burin_cuda_code *code,
        bool fast_gemm,
        const char *arch,
        struct burin_compiling *compiling,
        struct burin_error *err);

#endif
