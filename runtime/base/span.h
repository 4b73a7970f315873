/* runtime/base/span.h -- Text that lies in somebody else's bytes.
 *
 * Memory   A view: it is valid as long as what it points into, has no NUL behind it and may
 *          hold one. Bytes from files are not checked to be UTF-8.
 * Threads  Values, free to share. */
#ifndef BURIN_BASE_SPAN_H
#define BURIN_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>

struct burin_span {
    const char *at;
    size_t length; /* bytes */
};

/* All of a C string; NULL gives the empty span. */
struct burin_span burin_span_of(const char *text);

bool burin_span_is(struct burin_span span, const char *text);
bool burin_span_ends(struct burin_span span, const char *suffix);

/* Byte order, the shorter first where one begins the other: as strcmp. */
int burin_span_compare(struct burin_span a, struct burin_span b);

/* Foreign text made fit for a message: quotes around it, control characters, quotes and bytes
 * beyond ASCII as \xNN, cut with "..." where long. `burin_quote(span).text` is a C string
 * that lives to the end of the full expression. */
struct burin_quoted {
    char text[120];
};
struct burin_quoted burin_quote(struct burin_span span);

/* The same for what a person has to recognize, a path or a word: no quotes, characters of any
 * script as they are, and of a long one begin and end, with "..." between. */
struct burin_shown {
    char text[240];
};
struct burin_shown burin_show(struct burin_span span);

#endif
