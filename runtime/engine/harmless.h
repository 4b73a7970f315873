/* runtime/engine/harmless.h -- Inputs with which a program may run before there is anything to
 * compute: no row has a position, so nothing is written to pages or states.
 *
 * Why      Each kernel runs once before the first request: what a driver does late, it does then.
 * Threads  One at a time. */
#ifndef BURIN_ENGINE_HARMLESS_H
#define BURIN_ENGINE_HARMLESS_H

#include "runtime/engine/staging.h"

/* Fill the host's copy of what the run at of->call.n reads: one sequence, or one item, has all
 * rows. */
void burin_harmless_inputs(
        const struct burin_staging *staging, const struct burin_program_call *of);

#endif
