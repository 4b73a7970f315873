/* runtime/engine/encode.h -- Pictures of prompts: encoded before the step that needs them, kept in
 * the encoder cache until a step has used them.
 *
 * Runs     Whole pictures are packed into a run, as many as its arena holds: a constant of the
 *          plan. A run begins when a step needs its first picture, and takes those of the same
 *          prompt behind it along. What a picture becomes does not depend on what else is in
 *          the run.
 * Cache    A row for each soft token. The oldest request is served first; a prompt goes on up
 *          to its first picture that has no rows yet, so a full cache delays and never fails.
 * Memory   Tables come from an arena at the start; nothing is allocated later. Inputs and arena are
 *          those of the step, which runs before or after.
 * Graphs   A run is replayed in the smallest captured one that holds it.
 * Threads  One at a time. */
#ifndef BURIN_ENGINE_ENCODE_H
#define BURIN_ENGINE_ENCODE_H

#include "runtime/base/arena.h"
#include "runtime/burin.h"
#include "runtime/device/device.h"
#include "runtime/engine/batch.h"
#include "runtime/engine/calls.h"
#include "runtime/engine/graphs.h"
#include "runtime/engine/staging.h"
#include "runtime/plan/encoder.h"
#include "runtime/plan/plan.h"

#include <stdbool.h>
#include <stdint.h>

/* How far the pictures of one running request are. */
struct burin_seen {
    int n_encoded; /* the first so many have rows, */
    int n_used;    /* the first so many of these have given theirs back */
};

struct burin_encoder {
    const struct burin_program *program; /* NULL: nobody's pictures are encoded */
    struct burin_vision vision;
    struct burin_run_limits limits;
    int kv; /* of the family's layouts the one that is used */
    struct burin_program_call run_call;
    const struct burin_staging *staging;
    struct burin_captures *captures;
    uint8_t *pixels; /* these three where the host writes them */
    int32_t *positions;
    int32_t *item_begin;
    struct burin_patches *run; /* (limits.n_items) of one run */
    uint64_t cache;            /* the device's address */
    size_t row_bytes;
    int n_rows; /* of the cache */
    int n_free;
    int32_t *free; /* (n_rows); the first n_free are free, the last of them goes next */
    int n_runs;    /* so far */
    bool spans;    /* the step reads them: a picture's tokens see each other, */
    int n_batch;   /* and must be among this many of a step */

    /* By slot. */
    int n_ctx;
    struct burin_seen *seen;
    int32_t *soft_index; /* (slots, n_ctx) */
    int32_t *span;       /* (slots, n_ctx) */
};

/* With pictures in the plan: place what a run of its program needs, tables from `host`. Without,
 * the encoder takes none. `staging` and `captures` are kept. */
enum burin_status burin_encoder_open(
        struct burin_encoder *encoder,
        const struct burin_plan *plan,
        const struct burin_program *step,
        const struct burin_memory *memory,
        const struct burin_staging *staging,
        struct burin_captures *captures,
        struct burin_arena *host,
        struct burin_error *err);

/* Whether the planned runs hold a picture of n_soft soft tokens; its attention needs all of its
 * rows at once. BURIN_ENOMEM says the arena that would do. */
enum burin_status burin_encoder_fits(
        const struct burin_plan *plan, int n_soft, struct burin_error *err);

/* BURIN_EUSAGE for pictures out of order, outside the prompt or of another number of soft tokens
 * than their grid; BURIN_ELIMIT for one larger than a run or the cache. */
enum burin_status burin_encoder_check(
        const struct burin_encoder *encoder,
        const struct burin_request *request,
        struct burin_error *err);

/* A request gets a slot: its sequence knows where soft tokens stand. */
void burin_encoder_begin(
        struct burin_encoder *encoder,
        int slot,
        const struct burin_request *request,
        struct burin_sequence *sequence);

/* Encode what the next step may need of this sequence's pictures, whose prompt may go on by
 * `room` tokens, as far as the cache has rows. Leaves sequence->n_ready. */
enum burin_status burin_encoder_advance(
        struct burin_encoder *encoder,
        int slot,
        const struct burin_request *request,
        struct burin_sequence *sequence,
        int room,
        struct burin_error *err);

/* Rows of pictures that lie before n_done tokens are free again; all of them at the end. */
void burin_encoder_release(
        struct burin_encoder *encoder,
        int slot,
        const struct burin_request *request,
        int n_done);

#endif
