/* runtime/device/cuda/cache.h -- Machine code of kernels, kept between runs: one file each.
 *
 * Where    $BURIN_KERNEL_CACHE, $XDG_CACHE_HOME/burin/kernels or ~/.cache/burin/kernels:
 *          the first that is set; an empty $BURIN_KERNEL_CACHE is none at all.
 * Key      All that the code depends on: prelude, text, options (the architecture is one),
 *          NVRTC's version. It is the file's name, and in it.
 * Errors   A file that is not there, damaged or another's is not found, and what cannot be
 *          written is compiled again the next time.
 * Threads  Any number, of any number of processes: a file is written under another name,
 *          then renamed. */
#ifndef BURIN_DEVICE_CUDA_CACHE_H
#define BURIN_DEVICE_CUDA_CACHE_H

#include "runtime/base/arena.h"
#include "runtime/device/cuda/compile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct burin_cache_key {
    uint8_t bytes[16];
};

/* Extend a key by `n` bytes and their number: FNV-1a of 128 bits. Begin with a zeroed one. */
void burin_cache_key_add(struct burin_cache_key *key, const void *bytes, size_t n);

/* The folder's path, or NULL where there is to be no cache or no place for one; it need not exist. */
const char *burin_cache_folder(struct burin_arena *arena);

/* Whether there is to be none. */
bool burin_cache_unwanted(void);

/* Read what was kept, into `arena`; false where it isn't there. */
bool burin_cache_find(
        const char *folder,
        const struct burin_cache_key *key,
        struct burin_arena *arena,
        struct burin_compiled *compiled);

/* False where it can't be written. */
bool burin_cache_keep(
        const char *folder,
        const struct burin_cache_key *key,
        const struct burin_compiled *compiled);

#endif
