/* runtime/engine/capture.h -- The graphs of a plan: captured from the largest, and given up from the
 * least useful where the driver has no memory for all.
 *
 * Useful   A step's graphs more than an encoder's; of a program those without which runs would be
 *          padded most, or launched kernel by kernel.
 * Memory   Tables of the caller's.
 * Threads  One at a time. */
#ifndef BURIN_ENGINE_CAPTURE_H
#define BURIN_ENGINE_CAPTURE_H

#include "runtime/engine/calls.h"
#include "runtime/engine/graphs.h"
#include "runtime/engine/staging.h"
#include "runtime/plan/plan.h"

/* What was given up is told line by line: "graph step 5 is given up, ..."; many of them as a sum. */
typedef void burin_capture_note(void *user, const char *text);

struct burin_capturing {
    const struct burin_plan *plan;
    struct burin_program_call *calls; /* by program */
    struct burin_staging *staging;
    struct burin_captures *captures;
    burin_capture_note *note;
    bool (*progress)(void *user, int done, int total); /* false stops */
    void *user;
    int n_dropped;
};

/* Run each planned program once, kernel by kernel, at its largest extents. */
enum burin_status burin_warm_up(
        const struct burin_capturing *capturing, struct burin_error *err);

/* Capture, instantiate, upload and launch once each graph of the plan: the step's first, the largest
 * first. BURIN_OK also where some are given up. */
enum burin_status burin_capture_all(
        struct burin_capturing *capturing, struct burin_error *err);

/* Number of graphs that the plan has, and of their nodes. */
int burin_capture_count(const struct burin_plan *plan, int64_t *n_nodes);

#endif
