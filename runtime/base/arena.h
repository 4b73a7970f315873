/* runtime/base/arena.h -- Host memory with one lifetime, given back all at once.
 *
 * Units    Bytes. `used` is what callers asked for (with alignment), `obtained` what malloc
 *          gave: the figure the plan is held to.
 * Memory   Three lifetimes have an arena each: the process (model, tokenizer), the sequence,
 *          the call (mark, then rewind). malloc occurs in arena.c and nowhere else.
 * Threads  One thread at a time.
 * Why      Nothing is freed piece by piece, so nothing leaks or dangles piece by piece, and
 *          the account of a whole part is one number. */
#ifndef BURIN_BASE_ARENA_H
#define BURIN_BASE_ARENA_H

#include <stddef.h>

struct burin_arena_block; /* private */

/* A zeroed struct is an empty arena; it takes memory from the first burin_arena_take() on, in
 * blocks of 64 KiB or what one piece needs. */
struct burin_arena {
    struct burin_arena_block *last;
    size_t used;
    size_t obtained;
};

struct burin_arena_mark {
    struct burin_arena_block *block;
    size_t block_used;
    size_t used;
};

/* `count` zeroed elements of `bytes` each, aligned to `align` (a power of two up to 64).
 * NULL when the product overflows or malloc refuses; the arena is as before then. */
void *burin_arena_take(struct burin_arena *arena, size_t count, size_t bytes, size_t align);

/* As above for a C type: struct x *p = BURIN_TAKE(arena, n, struct x). */
#define BURIN_TAKE(arena, count, type)                                                     \
    ((type *)burin_arena_take((arena), (count), sizeof(type), _Alignof(type)))

/* A copy of `length` bytes of text with a NUL behind it, or NULL. */
char *burin_arena_text(struct burin_arena *arena, const char *text, size_t length);

struct burin_arena_mark burin_arena_mark(const struct burin_arena *arena);
void burin_arena_rewind(struct burin_arena *arena, struct burin_arena_mark mark);

/* Give everything back. Closing an empty or zeroed arena does nothing. */
void burin_arena_close(struct burin_arena *arena);

#endif
