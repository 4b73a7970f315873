/* runtime/plan/encoder.h -- Which items (pictures, frames, clips) go into one run of an
 * encoder.
 *
 * A run holds packed items: each takes its own soft tokens and rows and no more. What a run
 * may hold is a constant of the arena it computes in, never of the memory that happens to be
 * free, so how items are grouped does not depend on load.
 *
 * Units    Soft tokens: what enters the decoder. Rows: patches or frames, what the encoder
 *          reads.
 * Threads  Pure functions. */
#ifndef BURIN_PLAN_ENCODER_H
#define BURIN_PLAN_ENCODER_H

#include "runtime/base/status.h"
#include "runtime/model.h"

#include <stdint.h>

struct burin_item {
    int n_soft;
    int n_rows;
};

/* What the buffers of a run hold. */
struct burin_run_limits {
    int n_soft;
    int n_items;
    int n_rows;
};

/* The limits of a run of n_soft whose items have at least `smallest` soft tokens of
 * `rows_each` rows. A run holds as many rows as its soft tokens have, and no item is smaller
 * than the smallest. */
struct burin_run_limits burin_run_limits(int n_soft, int smallest, int rows_each);

/* How many of the first items one run takes: at least 1. BURIN_ELIMIT where the first alone is
 * above a limit: the message names it and both numbers. */
enum burin_status burin_run_take(
        const struct burin_run_limits *limits,
        const struct burin_item *items,
        int n_items,
        int *n_taken,
        struct burin_error *err);

/* Items that a set of graphs from `smallest_graph` to `largest_graph` soft tokens is made for:
 * `asked`, or what 0 asks for: as many of the smallest as the largest graph holds. An item has
 * at least a token, so BURIN_EUSAGE where there are more than the smallest graph has. */
enum burin_status burin_run_items(
        int smallest_item,
        int smallest_graph,
        int largest_graph,
        int asked,
        int *n_items,
        struct burin_error *err);

/* The largest run, a multiple of `step` soft tokens and at most `most`, whose arena is not
 * above `bytes`; 0 where not one step fits. */
int burin_run_largest(
        const struct burin_program *program,
        const struct burin_params *params,
        int64_t bytes,
        int step,
        int most);

#endif
