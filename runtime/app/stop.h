/* runtime/app/stop.h -- Ends a stream of text before the first of some texts.
 *
 * What may be the begin of one is held back until it is certain, so nothing of a stop text is
 * ever written.
 *
 * Memory   The buffer is the caller's: at least burin_stop_room() bytes.
 * Threads  One. */
#ifndef BURIN_APP_STOP_H
#define BURIN_APP_STOP_H

#include "runtime/app/settings.h"
#include "runtime/base/span.h"

#include <stdbool.h>
#include <stddef.h>

struct burin_stop {
    const struct burin_texts *texts; /* none of them empty */
    char *buffer;
    bool met;

    size_t begin; /* private: of what is held back */
    size_t n_held;
};

/* For pushes of at most `push` bytes. */
size_t burin_stop_room(const struct burin_texts *texts, size_t push);

/* Text that is certain now; it lies in the buffer until the next call. Once a stop text is
 * met, `met` is set and nothing comes any more. */
struct burin_span burin_stop_push(struct burin_stop *stop, const char *text, size_t length);

/* The stream has ended: what was held back. */
struct burin_span burin_stop_flush(struct burin_stop *stop);

#endif
