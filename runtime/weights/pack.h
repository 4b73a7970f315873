/* runtime/weights/pack.h -- Stream a bound checkpoint into the engine's layout.
 *
 * A tile of BURIN_TILE_ROWS rows is read and packed at a time; rows go in Hugging Face's order,
 * also where a GGUF file holds them in pairs for its rope (burin_weight.gguf_rope_heads).
 *
 * Memory   `arena` is the caller's, family->weights_bytes long and aligned to 64. Besides it,
 *          each thread has a buffer for the rows of one tile: 1 MiB, or 32 rows where these
 *          are longer. All of it is given back before the return.
 * Threads  At most n_threads (1 at least) work until the return, the caller's is one of them.
 *          Tiles are packed one by one, so the bytes do not depend on n_threads.
 * Errors   BURIN_EIO a file has shrunk or cannot be read, BURIN_ENOMEM, BURIN_ESTOPPED when
 *          `report` said so. The arena's content is of no use then. */
#ifndef BURIN_WEIGHTS_PACK_H
#define BURIN_WEIGHTS_PACK_H

#include "runtime/base/status.h"
#include "runtime/model.h"
#include "runtime/weights/checkpoint.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the file that are packed, of all that will be. Called on the caller's thread a few
 * times for each MiB, and once at the end with done == total; false stops. */
typedef bool burin_pack_report(void *user, size_t done, size_t total);

/* `tensors` are from burin_bind(); `report` may be NULL. */
enum burin_status burin_pack(
        const struct burin_model *model,
        const struct burin_family *family,
        const struct burin_checkpoint *checkpoint,
        const struct burin_tensor *const *tensors,
        uint8_t *arena,
        int n_threads,
        burin_pack_report *report,
        void *user,
        struct burin_error *err);

/* A way into an arena that the host cannot write: packed bytes go through buffers that it can. */
struct burin_pack_sink {
    size_t buffer_bytes; /* more than the largest tile; 32 MiB are enough for all */

    /* One that may be written, aligned to 64. */
    enum burin_status (*buffer)(void *user, uint8_t **buffer, struct burin_error *err);

    /* Begin to copy its first `n` bytes to byte `offset` of the arena. What lies between tiles
     * means nothing. */
    enum burin_status (*send)(void *user, size_t offset, size_t n, struct burin_error *err);

    /* Wait until all of it is there; also behind a failure. */
    enum burin_status (*finish)(void *user, struct burin_error *err);
    void *user;
};

/* The same through `sink`, `arena_bytes` of the arena: weights behind them are left out. The
 * sink is called on the caller's thread. BURIN_ELIMIT where its buffers are too small. */
enum burin_status burin_pack_stream(
        const struct burin_model *model,
        const struct burin_family *family,
        const struct burin_checkpoint *checkpoint,
        const struct burin_tensor *const *tensors,
        size_t arena_bytes,
        const struct burin_pack_sink *sink,
        int n_threads,
        burin_pack_report *report,
        void *user,
        struct burin_error *err);

#endif
