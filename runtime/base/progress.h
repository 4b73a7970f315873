/* runtime/base/progress.h -- A bar on a terminal for work that takes more than a moment.
 *
 *     struct burin_progress bar;
 *     burin_progress_begin(&bar, stderr, "packing weights", BURIN_COUNT_BYTES, verbose);
 *     burin_progress_update(&bar, done, total);       // as often as you like
 *     burin_progress_end(&bar);                       // the line is empty again
 *
 * Shows    The share, how much of how much, for bytes the rate, and how long it still takes.
 * Where    On a terminal a bar, redrawn at most ten times a second and first after 300 ms.
 *          Elsewhere nothing, or with `verbose` a plain line every five seconds.
 * Memory   No allocation: a bar may be updated while an engine is sealed. */
#ifndef BURIN_BASE_PROGRESS_H
#define BURIN_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum burin_count { BURIN_COUNT_BYTES, BURIN_COUNT_THINGS };

struct burin_progress {
    FILE *out;
    const char *what; /* kept, not copied */
    enum burin_count count;
    bool terminal;
    bool verbose;
    bool drawn;
    double began_ms;
    double drawn_ms;
};

void burin_progress_begin(
        struct burin_progress *bar,
        FILE *out,
        const char *what,
        enum burin_count count,
        bool verbose);
void burin_progress_update(struct burin_progress *bar, int64_t done, int64_t total);
void burin_progress_end(struct burin_progress *bar);

#endif
