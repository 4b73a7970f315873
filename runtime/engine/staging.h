/* runtime/engine/staging.h -- What a run reads and what it leaves, where the host can reach it.
 *
 * On a CPU that is the memory of the programs themselves, and nothing is copied. Elsewhere it is
 * a copy on the host: a run's inputs are sent before it, its results fetched behind it.
 *
 * Memory   The host's part is the caller's.
 * Order    As on the queue: what was sent or fetched is there after burin_queue_finish(); until
 *          then it stays as it is.
 * Threads  One at a time. */
#ifndef BURIN_ENGINE_STAGING_H
#define BURIN_ENGINE_STAGING_H

#include "runtime/base/status.h"
#include "runtime/device/device.h"
#include "runtime/engine/calls.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct burin_staging {
    struct burin_queue *queue;
    bool copies;     /* false: the host's is the device's memory */
    uint8_t *inputs; /* the host's copy of memory.inputs, or that itself */
    uint64_t inputs_address;
    uint8_t *results; /* of copies */
    size_t results_bytes;
};

/* Where the host writes input number `i` of a program; NULL where it has no bytes. */
void *burin_staging_input(
        const struct burin_staging *staging, const struct burin_program_call *of, int i);

/* Send what the run at of->call.n reads. */
enum burin_status burin_staging_send(
        const struct burin_staging *staging,
        const struct burin_program_call *of,
        struct burin_error *err);

/* Have `bytes` at the device's address `from` at *at, once the queue has been waited for; `place` is
 * where in the host's copy, so that several may be had. */
enum burin_status burin_staging_fetch(
        const struct burin_staging *staging,
        size_t place,
        const void *from,
        size_t bytes,
        const void **at,
        struct burin_error *err);

#endif
