/* runtime/plan/shape.h -- The shape of a buffer, which the tables hold as the description
 * says it, in numbers: "(9 * soft, D_VISION)" as "(10080, 1152)".
 *
 * Memory   The caller's text.
 * Threads  Pure functions. */
#ifndef BURIN_PLAN_SHAPE_H
#define BURIN_PLAN_SHAPE_H

#include "runtime/model.h"

#include <stddef.h>

/* The names in a shape are the model's dims, extents and parameters. A shape with something
 * else in it stays as it is. */
void burin_shape_numbers(
        const char *shape,
        const struct burin_model *model,
        const struct burin_params *params,
        const int n[BURIN_N_EXTENTS],
        char *text,
        size_t capacity);

/* "tokens", "sequences", "outputs", "soft tokens" */
const char *burin_extent_name(enum burin_extent extent);

#endif
