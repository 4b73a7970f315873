#include "runtime/text/heap.h"

#include <stdint.h>
#include <string.h>

enum { HEAD = 16, LEAST = 5 /* 32 bytes */ };

static int log2_above(size_t bytes)
{
    int log2 = LEAST;
    while (log2 < 63 && ((size_t)1 << log2) < bytes)
        log2++;
    return log2;
}

void *burin_heap_take(struct burin_heap *heap, size_t bytes)
{
    const int log2 = bytes > SIZE_MAX / 4 ? 63 : log2_above(bytes + HEAD);
    const size_t size = (size_t)1 << log2;
    if (size > heap->limit - heap->used)
        return NULL;

    char *piece = heap->free[log2];
    if (piece) {
        memcpy(&heap->free[log2], piece + HEAD, sizeof(void *));
    } else {
        if (size > (size_t)(heap->end - heap->at) && heap->arena) {
            const size_t region = size > heap->region ? size : heap->region;
            heap->at = burin_arena_take(heap->arena, region, 1, HEAD);
            heap->end = heap->at ? heap->at + region : NULL;
        }
        if (!heap->at || size > (size_t)(heap->end - heap->at))
            return NULL;
        piece = heap->at;
        heap->at += size;
    }
    memcpy(piece, &log2, sizeof log2);
    heap->used += size;
    return piece + HEAD;
}

void burin_heap_give(struct burin_heap *heap, void *piece)
{
    if (!piece)
        return;

    char *begin = (char *)piece - HEAD;
    int log2;
    memcpy(&log2, begin, sizeof log2);
    memcpy(piece, &heap->free[log2], sizeof(void *));
    heap->free[log2] = begin;
    heap->used -= (size_t)1 << log2;
}
