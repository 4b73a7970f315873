/* runtime/engine/startup.h -- A GPU, from the plan to the memory and graphs that serve: in an order
 * in which nothing can run out half-way.
 *
 *     look       what is free, before anything is ours
 *     context    the driver's, for this process
 *     kernels    all of them compiled or taken from the cache, and loaded
 *     stacks     of all threads that may run, once
 *     memory     weights, arena, inputs, encoder cache, states of sequences: exact
 *     weights    packed and sent
 *     addresses  of all KV pages that there could be, and memory for one
 *     warm-up    each program once, kernel by kernel, at its largest
 *     graphs     captured, instantiated, uploaded and launched once each, the largest first
 *     KV         from what is really left, the largest pieces first, in whole pages
 *
 * Why      What is fixed comes before what varies. A capture that lacks memory loses a graph and
 *          says so, since no page exists yet; pages get what graphs have left. An allocation that
 *          succeeds is the only proof that memory is there: others may take it at any time.
 * Account  What we take counts, and of what the driver takes for us what NVML tells of this process.
 *          Without it, what the device has less, and at most what was planned.
 * Memory   The caller's structs; burin_start_close() gives back all that they hold.
 * Errors   Behind a failure burin_start_close() may and must be called. BURIN_ENOMEM names what does
 *          not fit, by how much, and the option that mends it.
 * Threads  One at a time. */
#ifndef BURIN_ENGINE_STARTUP_H
#define BURIN_ENGINE_STARTUP_H

#include "runtime/device/ledger.h"
#include "runtime/engine/calls.h"
#include "runtime/engine/gpu.h"
#include "runtime/engine/graphs.h"
#include "runtime/engine/memory.h"
#include "runtime/engine/staging.h"
#include "runtime/plan/plan.h"

#include <stdbool.h>
#include <stdint.h>

enum burin_start_step {
    BURIN_START_LOOK,
    BURIN_START_CONTEXT,
    BURIN_START_KERNELS,
    BURIN_START_STACKS,
    BURIN_START_MEMORY,
    BURIN_START_WEIGHTS,
    BURIN_START_ADDRESSES,
    BURIN_START_WARM_UP,
    BURIN_START_GRAPHS,
    BURIN_START_KV,
    BURIN_N_START_STEPS
};
extern const char *const burin_start_names[BURIN_N_START_STEPS];

enum { BURIN_START_NOTES = 32, BURIN_START_NOTE = 400 };

/* What is known of a start besides its owners. */
struct burin_start_facts {
    double ms[BURIN_N_START_STEPS];
    int64_t limit_bytes; /* INT64_MAX: none */
    int n_graphs;        /* captured, of so many planned */
    int n_graphs_planned;
    int64_t n_nodes; /* of the captured */
    int n_notes;
    struct burin_start_note {
        bool unasked; /* it takes something from the user: shown whether asked for or not */
        char text[BURIN_START_NOTE];
    } notes[BURIN_START_NOTES]; /* what is not as planned, a line each */
};

struct burin_start {
    /* What is asked for. */
    struct burin_plan *plan; /* n_ctx, n_pages and kv_tokens become what was obtained */
    const struct burin_plan_request *request; /* that it was made of */
    struct burin_gpu *gpu;                    /* open, and without a context */
    bool keep_kernels; /* in the cache; and results are fetched: false for a rehearsal */
    int n_threads;     /* that compile */

    /* Weights into memory->weights; NULL: there are none to send. */
    enum burin_status (*send_weights)(void *user, struct burin_error *err);
    /* Where it is; false stops. `total` 0: it cannot be told. May be NULL. */
    bool (*on_step)(void *user, enum burin_start_step step, size_t done, size_t total);
    void *user;

    /* What becomes of it; zeroed before. */
    struct burin_ledger *ledger;
    struct burin_memory *memory;
    struct burin_queue *queue;
    struct burin_staging *staging;
    struct burin_captures *captures;
    struct burin_program_call calls[BURIN_MAX_PROGRAMS];
    struct burin_start_facts facts;

    /* Private. */
    int64_t free_before; /* -1: nobody told */
    bool untold;      /* what the driver took is what the device had less, once at least */
    int64_t kv_bytes; /* behind the addresses so far */
    int64_t host_bytes; /* booked, that the host will take of the same memory */
    void *pinned[2];
};

enum burin_status burin_start_run(struct burin_start *start, struct burin_error *err);

/* A plan for the card as it is at this moment, caps included. *may_come: it does not fit, and would
 * if nobody else had anything of the card. */
enum burin_status burin_start_plan(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        bool *may_come,
        struct burin_error *err);
#define BURIN_START_WAITS "(--wait-for-vram 60 waits until there is more.)"

/* One step of it, for tests of other orders. */
enum burin_status burin_start_step(
        struct burin_start *start, enum burin_start_step step, struct burin_error *err);

/* The GPU's context is left to burin_gpu_close(). */
void burin_start_close(struct burin_start *start);

/* ---- startup_kv.c ---------------------------------------------------------------------- */

/* Addresses of all pages that there could be, and memory for the first. */
enum burin_status burin_start_addresses(struct burin_start *start, struct burin_error *err);

/* Memory for as many pages as the limit and the device have left. */
enum burin_status burin_start_pages(struct burin_start *start, struct burin_error *err);

/* ---- For both -------------------------------------------------------------------------- */

/* A note of what is taken from the user: memory, graphs, context, time. */
void burin_start_note(struct burin_start *start, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/* One for who asks. */
void burin_start_remark(struct burin_start *start, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/* Capture all graphs anew, for other addresses of the pages. */
enum burin_status burin_start_capture(struct burin_start *start, struct burin_error *err);

#endif
