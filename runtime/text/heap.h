/* runtime/text/heap.h -- Memory for a library that frees piece by piece (PCRE2, Lua), cut from
 * one region or from an arena. What is given back is kept in lists by size and handed out
 * again; the whole goes when the region or the arena does.
 *
 * Units    Bytes. A piece takes the next power of two above its size and 16.
 * Threads  One thread at a time. */
#ifndef BURIN_TEXT_HEAP_H
#define BURIN_TEXT_HEAP_H

#include "runtime/base/arena.h"

#include <stddef.h>

struct burin_heap {
    char *at; /* what is left of the region */
    char *end;
    struct burin_arena *arena; /* more regions come from here; NULL: there is only one */
    size_t region;             /* bytes of a region, at least */
    size_t limit;              /* bytes to hand out at once, at most */
    size_t used;               /* bytes handed out, as rounded: never above the limit */
    void *free[64];            /* by the logarithm of the size */
};

/* NULL where the limit or the memory ends. Aligned to 16. */
void *burin_heap_take(struct burin_heap *heap, size_t bytes);

/* NULL is allowed. */
void burin_heap_give(struct burin_heap *heap, void *piece);

#endif
