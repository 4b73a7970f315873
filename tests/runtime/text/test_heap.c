/* Memory for libraries that free piece by piece: its limit, and what is handed out again. */
#include "runtime/text/heap.h"
#include "tests/support/test.h"

#include <string.h>

static struct burin_heap in_an_arena(struct burin_arena *arena, size_t limit)
{
    return (struct burin_heap){ .arena = arena, .region = 1024, .limit = limit };
}

SPEC(what_is_given_back_is_handed_out_again)
{
    struct burin_arena arena = { 0 };
    struct burin_heap heap = in_an_arena(&arena, 4096);
    char *piece = burin_heap_take(&heap, 100);
    memset(piece, 7, 100);

    burin_heap_give(&heap, piece);

    assert_int_equal(heap.used, 0);
    assert_ptr_equal(burin_heap_take(&heap, 90), piece);
    burin_arena_close(&arena);
}

SPEC(pieces_are_aligned_to_16)
{
    struct burin_arena arena = { 0 };
    struct burin_heap heap = in_an_arena(&arena, 1 << 20);
    for (size_t bytes = 1; bytes < 5000; bytes = bytes * 3 + 1)
        assert_int_equal((uintptr_t)burin_heap_take(&heap, bytes) % 16, 0);
    burin_arena_close(&arena);
}

/* 600 bytes take 1024: with two of them handed out, 900 of 2948 are left, too few for a third.
 * It was handed out, and from then on so was anything. */
SPEC(the_limit_holds_for_what_pieces_are_rounded_up_to)
{
    struct burin_arena arena = { 0 };
    struct burin_heap heap = in_an_arena(&arena, 2948);
    assert_non_null(burin_heap_take(&heap, 600));
    assert_non_null(burin_heap_take(&heap, 600));

    assert_null(burin_heap_take(&heap, 600));
    assert_null(burin_heap_take(&heap, 1 << 20));

    assert_int_equal(heap.used, 2048);
    assert_non_null(burin_heap_take(&heap, 400));
    burin_arena_close(&arena);
}

SPEC(a_size_beyond_all_memory_is_refused)
{
    struct burin_arena arena = { 0 };
    struct burin_heap heap = in_an_arena(&arena, SIZE_MAX);
    assert_null(burin_heap_take(&heap, SIZE_MAX));
    assert_null(burin_heap_take(&heap, SIZE_MAX / 4));
    assert_int_equal(heap.used, 0);
    burin_arena_close(&arena);
}
