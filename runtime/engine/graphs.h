/* runtime/engine/graphs.h -- The graphs that were captured: which one a run is replayed in, and
 * what stands in the rows that it has too many.
 *
 * Padding  Rows beyond the real ones bear position -1, token 0, no soft token and a sequence of
 *          their own that has no state: nothing is written for them and nobody reads what they
 *          leave. An encoder's patches beyond the real ones are an item of their own.
 * Memory   A table with room for all that a plan may name; each graph is the device's.
 * Threads  One at a time. */
#ifndef BURIN_ENGINE_GRAPHS_H
#define BURIN_ENGINE_GRAPHS_H

#include "runtime/device/device.h"
#include "runtime/engine/batch.h"
#include "runtime/plan/plan.h"

#include <stdbool.h>
#include <stdint.h>

struct burin_captured {
    const struct burin_program *program;
    int n; /* what its extent counts */
    struct burin_graph graph;
};

enum { BURIN_MAX_CAPTURES = BURIN_MAX_PROGRAMS * BURIN_MAX_LADDER };

struct burin_captures {
    int n;
    struct burin_captured at[BURIN_MAX_CAPTURES];
    int64_t n_eager;    /* runs so far: kernel by kernel, */
    int64_t n_replayed; /* in a graph, */
    int64_t n_padded;   /* and of these in one that is larger */
};

/* One that a plan names, and no other has been added for. The graph is the table's then. */
void burin_captures_add(
        struct burin_captures *captures, const struct burin_captured *captured);

/* The smallest of a program that holds n, or NULL. */
const struct burin_captured *burin_captures_find(
        const struct burin_captures *captures, const struct burin_program *program, int n);

/* A run of n was replayed in it; NULL: kernel by kernel. */
void burin_captures_count(
        struct burin_captures *captures, const struct burin_captured *captured, int n);

/* Give entry number `i`, or all, back to the device. */
void burin_captures_drop(struct burin_captures *captures, int i);
void burin_captures_close(struct burin_captures *captures);

/* Whether each sequence of this step has one row, whose logits are wanted. */
bool burin_batch_decodes(const struct burin_batch *batch);

/* Fill the step's arrays up to n sequences of one row. */
void burin_batch_pad(const struct burin_batch *batch, int n);

#endif
