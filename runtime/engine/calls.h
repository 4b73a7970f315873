/* runtime/engine/calls.h -- Of each planned program the call that runs it: where its weights,
 * arena, inputs and states lie on the device. They stay there, so a graph may hold them.
 *
 * Units    Addresses are the device's.
 * Memory   A call points into itself: it must not be moved.
 * Threads  One at a time. */
#ifndef BURIN_ENGINE_CALLS_H
#define BURIN_ENGINE_CALLS_H

#include "runtime/base/status.h"
#include "runtime/engine/memory.h"
#include "runtime/model.h"
#include "runtime/plan/plan.h"

#include <stddef.h>
#include <stdint.h>

enum { BURIN_MAX_INPUTS = 16 };

struct burin_program_call {
    struct burin_call call; /* comes first, and n[] is set for each run */
    const struct burin_program *program;
    const void
            *inputs[BURIN_MAX_INPUTS]; /* placed for the largest extents; NULL: no bytes */
    uint8_t *states[2];                /* pages, slots */
};

/* BURIN_ELIMIT for a program with more inputs than there is room for. `program` is an index into
 * the family's; the KV pages' address may be set later. */
enum burin_status burin_program_call_open(
        struct burin_program_call *of,
        const struct burin_plan *plan,
        int program,
        const struct burin_memory *memory,
        struct burin_error *err);

/* The largest extents of a program's runs. */
void burin_largest_extents(
        const struct burin_plan *plan, int program, int n[BURIN_N_EXTENTS]);

#endif
