/* runtime/base/put.h -- Text made piece by piece in the caller's buffer.
 *
 *     char bytes[200];
 *     struct burin_put text = { bytes, sizeof bytes, 0 };
 *     burin_put(&text, "%d rows", n);
 *
 * Memory   The caller's. What does not fit is left out, a piece as a whole; the text always
 *          ends with a NUL. `used` counts without it.
 * Threads  One at a time on a text. */
#ifndef BURIN_BASE_PUT_H
#define BURIN_BASE_PUT_H

#include <stddef.h>

struct burin_put {
    char *bytes;
    size_t size; /* of the buffer, 1 at least */
    size_t used;
};

void burin_put(struct burin_put *text, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

#endif
