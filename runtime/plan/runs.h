/* runtime/plan/runs.h -- The runs of a plan: each graph, and the largest of each program that
 * has none. What a run needs at fixed addresses, and what the driver keeps for it.
 *
 * Units    Bytes.
 * Threads  Pure functions. */
#ifndef BURIN_PLAN_RUNS_H
#define BURIN_PLAN_RUNS_H

#include "runtime/plan/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct burin_plan_run {
    const struct burin_program *program;
    int n;      /* what the program's extent counts */
    bool graph; /* captured; else launched kernel by kernel */
    int extents[BURIN_N_EXTENTS];
    int64_t input_bytes;
    int64_t arena_bytes;
    int64_t driver_bytes; /* 0 where it is no graph */
};

/* Run number i of a plan: program by program its graphs, from the smallest, then its largest
 * run without one; an encoder whose graphs reach its largest has none. False behind the last. */
bool burin_plan_run_at(const struct burin_plan *plan, int i, struct burin_plan_run *run);

/* The one that needs most arena and inputs. False where there is none. */
bool burin_plan_largest_run(const struct burin_plan *plan, struct burin_plan_run *run);

/* One piece of memory of a run: an input, or a buffer of its arena. */
struct burin_plan_piece {
    const char *name;
    const char *shape;               /* as the description says it; NULL of an input */
    const struct burin_input *input; /* NULL of a buffer */
    const struct burin_buffer *buffer;
    enum burin_dtype dtype;
    int64_t bytes;
};

/* The largest pieces of a run in falling order, at most `most`; how many there are. */
int burin_plan_pieces(
        const struct burin_plan *plan,
        const struct burin_plan_run *run,
        struct burin_plan_piece *pieces,
        int most);

/* "(1856, 2520, 768) bf16": a piece's numbers in this run, and its dtype. */
enum { BURIN_SHAPE_TEXT = 96 };
void burin_plan_shape(
        const struct burin_plan *plan,
        const struct burin_plan_run *run,
        const struct burin_plan_piece *piece,
        char text[BURIN_SHAPE_TEXT]);

bool burin_is_encoder(const struct burin_program *program);
bool burin_is_draft(const struct burin_program *program);
bool burin_is_audio(const struct burin_program *program);

/* The options that bring a program into the plan: "--images, --video-frames". */
const char *burin_program_option(const struct burin_program *program);

#endif
