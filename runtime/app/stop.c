#include "runtime/app/stop.h"

#include <string.h>

static size_t longest(const struct burin_texts *texts)
{
    size_t most = 0;
    for (int i = 0; i < texts->n; i++)
        if (strlen(texts->values[i]) > most)
            most = strlen(texts->values[i]);
    return most;
}

size_t burin_stop_room(const struct burin_texts *texts, size_t push)
{
    return longest(texts) + push;
}

/* Where the first stop text begins, n where there is none. */
static size_t find_first(const struct burin_texts *texts, const char *at, size_t n)
{
    size_t first = n;
    for (int i = 0; i < texts->n; i++) {
        const size_t length = strlen(texts->values[i]);
        const char *found = length ? memmem(at, n, texts->values[i], length) : NULL;
        if (found && (size_t)(found - at) < first)
            first = (size_t)(found - at);
    }
    return first;
}

/* Bytes at the end that begin a stop text. */
static size_t uncertain(const struct burin_texts *texts, const char *at, size_t n)
{
    size_t most = 0;
    for (int i = 0; i < texts->n; i++) {
        const size_t length = strlen(texts->values[i]);
        for (size_t k = length > n ? n : length; k > most; k--)
            if (memcmp(at + n - k, texts->values[i], k) == 0)
                most = k;
    }
    return most;
}

struct burin_span burin_stop_push(struct burin_stop *stop, const char *text, size_t length)
{
    if (stop->met)
        return (struct burin_span){ stop->buffer, 0 };
    memmove(stop->buffer, stop->buffer + stop->begin, stop->n_held);
    memcpy(stop->buffer + stop->n_held, text, length);
    const size_t n = stop->n_held + length;

    const size_t first = find_first(stop->texts, stop->buffer, n);
    stop->met = first < n;
    stop->n_held = stop->met ? 0 : uncertain(stop->texts, stop->buffer, n);
    stop->begin = stop->met ? first : n - stop->n_held;
    return (struct burin_span){ stop->buffer, stop->begin };
}

struct burin_span burin_stop_flush(struct burin_stop *stop)
{
    const struct burin_span rest = { stop->buffer + stop->begin, stop->n_held };
    stop->n_held = 0;
    return rest;
}
