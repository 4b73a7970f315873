/* runtime/plan/fit.h -- How many KV pages a device holds once everything else stands on it.
 *
 * KV comes last: what is fixed, the graphs and the state of each sequence are counted first,
 * and pages get what is left. So a graph that costs more than was thought takes pages, and
 * cannot fail for lack of memory after they have been made.
 *
 * Units    Bytes, unless a name says pages.
 * Threads  Pure functions. */
#ifndef BURIN_PLAN_FIT_H
#define BURIN_PLAN_FIT_H

#include "runtime/base/status.h"

#include <stdint.h>

struct burin_fit {
    int64_t limit;      /* what the process may use of the device */
    int64_t fixed;      /* context, weights, arena, inputs, ... */
    int64_t graphs;     /* of the driver */
    int64_t state;      /* of all sequences */
    int64_t page_bytes; /* of a page in one segment */
    int n_segments;     /* ranges of addresses that grow apart, each in whole granules */
    int64_t granule;
};

/* What is left for pages; negative where that much is missing before the first. */
int64_t burin_fit_room(const struct burin_fit *fit);

/* As many pages as fit in the room: n_segments * ceil(n * page_bytes / granule) * granule is
 * not above it. BURIN_ENOMEM where it is below a granule a segment. */
enum burin_status burin_fit_pages(
        const struct burin_fit *fit, int64_t *n_pages, struct burin_error *err);

/* What is missing for so many pages, 0 where they fit. */
int64_t burin_fit_short(const struct burin_fit *fit, int64_t n_pages);

/* Of several devices that must agree: the least number of pages, and whose it is. */
int64_t burin_fit_agree(const int64_t *n_pages, int n_devices, int *binding);

#endif
