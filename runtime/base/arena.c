#include "runtime/base/arena.h"

#include "runtime/base/round.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_ALIGN = 64, LEAST_BLOCK = 64 * 1024 };

struct burin_arena_block {
    struct burin_arena_block *previous;
    size_t capacity;
    size_t used;
    _Alignas(BLOCK_ALIGN) unsigned char bytes[];
};

static struct burin_arena_block *add_block(struct burin_arena *arena, size_t needed)
{
    size_t capacity = needed > LEAST_BLOCK ? needed : LEAST_BLOCK;
    if (capacity > SIZE_MAX - 2 * (size_t)BLOCK_ALIGN - sizeof(struct burin_arena_block))
        return NULL;
    capacity = burin_round_up(capacity, BLOCK_ALIGN);

    const size_t total = sizeof(struct burin_arena_block) + capacity;
    struct burin_arena_block *block = aligned_alloc(BLOCK_ALIGN, total);
    if (!block)
        return NULL;
    block->previous = arena->last;
    block->capacity = capacity;
    block->used = 0;
    arena->last = block;
    arena->obtained += total;
    return block;
}

void *burin_arena_take(struct burin_arena *arena, size_t count, size_t bytes, size_t align)
{
    if (bytes && count > SIZE_MAX / bytes)
        return NULL;
    const size_t wanted = count * bytes;

    struct burin_arena_block *block = arena->last;
    size_t begin = block ? burin_round_up(block->used, align) : 0;
    if (!block || begin > block->capacity || wanted > block->capacity - begin) {
        block = add_block(arena, wanted);
        if (!block)
            return NULL;
        begin = 0;
    }
    arena->used += begin + wanted - block->used;
    block->used = begin + wanted;
    memset(block->bytes + begin, 0, wanted);
    return block->bytes + begin;
}

char *burin_arena_text(struct burin_arena *arena, const char *text, size_t length)
{
    if (length == SIZE_MAX)
        return NULL;
    char *copy = burin_arena_take(arena, length + 1, 1, 1);
    if (copy)
        memcpy(copy, text, length);
    return copy;
}

struct burin_arena_mark burin_arena_mark(const struct burin_arena *arena)
{
    return (struct burin_arena_mark){
        .block = arena->last,
        .block_used = arena->last ? arena->last->used : 0,
        .used = arena->used,
    };
}

void burin_arena_rewind(struct burin_arena *arena, struct burin_arena_mark mark)
{
    while (arena->last != mark.block) {
        struct burin_arena_block *block = arena->last;
        arena->last = block->previous;
        arena->obtained -= sizeof *block + block->capacity;
        free(block);
    }
    if (arena->last)
        arena->last->used = mark.block_used;
    arena->used = mark.used;
}

void burin_arena_close(struct burin_arena *arena)
{
    burin_arena_rewind(arena, (struct burin_arena_mark){ 0 });
}
