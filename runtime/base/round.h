/* runtime/base/round.h -- Sizes rounded up.
 *
 * Threads  Pure. */
#ifndef BURIN_BASE_ROUND_H
#define BURIN_BASE_ROUND_H

#include <stddef.h>

/* The least multiple of `unit` that is not below `bytes`. The caller has checked that it fits. */
static inline size_t burin_round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

#endif
