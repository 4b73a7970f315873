/* runtime/text/bpe.h: merging, short and long, against merging as plainly as it can be said. */
#include "runtime/text/bpe.h"

#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

/* Tokens of a tiny vocabulary over "abc": ids 0, 1, 2 are the letters. */
enum { A, B, C, AB, BC, AA, ABC, AAAA, ABAB, N_TOKENS };
static const char *const spelled[N_TOKENS] = {
    "a", "b", "c", "ab", "bc", "aa", "abc", "aaaa", "abab",
};
static const struct {
    int32_t left, right, merged;
} merges[] = {
    { B, C, BC },   { A, B, AB },     { A, A, AA },     { AB, C, ABC },
    { A, BC, ABC }, { AB, AB, ABAB }, { AA, AA, AAAA },
};
enum { N_MERGES = sizeof merges / sizeof *merges };

static struct burin_bpe tiny_bpe(void)
{
    static _Alignas(64) char region[4096];
    struct burin_bpe bpe;
    assert_true(burin_bpe_bytes(N_MERGES) <= sizeof region);
    burin_bpe_begin(&bpe, N_MERGES, region);
    for (int i = 0; i < 256; i++)
        bpe.byte_ids[i] = -1;
    bpe.byte_ids['a'] = A;
    bpe.byte_ids['b'] = B;
    bpe.byte_ids['c'] = C;
    for (uint32_t i = 0; i < N_MERGES; i++)
        burin_bpe_put(&bpe, merges[i].left, merges[i].right, i, merges[i].merged);
    return bpe;
}

/* The definition: the first merge of the list that applies, at its leftmost place, again and
 * again. */
static size_t merge_plainly(const char *text, size_t n, int32_t *ids)
{
    size_t n_ids = 0;
    for (size_t i = 0; i < n; i++)
        if (text[i] >= 'a' && text[i] <= 'c')
            ids[n_ids++] = text[i] - 'a';
    for (int rank = 0; rank < N_MERGES; rank++) {
        for (size_t i = 0; i + 1 < n_ids; i++) {
            if (ids[i] != merges[rank].left || ids[i + 1] != merges[rank].right)
                continue;
            ids[i] = merges[rank].merged;
            memmove(ids + i + 1, ids + i + 2, (n_ids - i - 2) * sizeof *ids);
            n_ids--;
            rank = -1;
            break;
        }
    }
    return n_ids;
}

static void assert_merges_plainly(const char *text, size_t n)
{
    const struct burin_bpe bpe = tiny_bpe();
    struct burin_arena arena = { 0 };
    int32_t ids[512];
    int32_t wanted[512];
    size_t n_ids;

    const size_t n_wanted = merge_plainly(text, n, wanted);
    assert_true(
            burin_bpe_encode(&bpe, (struct burin_span){ text, n }, &arena, ids, &n_ids));

    if (n_ids != n_wanted || memcmp(ids, wanted, n_ids * sizeof *ids) != 0)
        fail_msg("%.*s: %zu ids, %zu are right", (int)n, text, n_ids, n_wanted);
    burin_arena_close(&arena);
}

SPEC(the_most_urgent_pair_goes_first_and_the_leftmost_of_equals)
{
    assert_merges_plainly("abc", 3);     /* b c before a b */
    assert_merges_plainly("aaa", 3);     /* aa a, not a aa */
    assert_merges_plainly("aaaaaaa", 7); /* aaaa aa a */
    assert_merges_plainly("ababab", 6);
}

SPEC(every_text_of_three_letters_up_to_length_seven_merges_as_defined)
{
    char text[7];
    for (size_t n = 0; n <= sizeof text; n++) {
        long n_texts = 1;
        for (size_t i = 0; i < n; i++)
            n_texts *= 3;
        for (long number = 0; number < n_texts; number++) {
            long rest = number;
            for (size_t i = 0; i < n; i++, rest /= 3)
                text[i] = (char)('a' + rest % 3);
            assert_merges_plainly(text, n);
        }
    }
}

/* 128 bytes are the longest piece that merges in an array, 129 the shortest in a heap. */
SPEC(long_pieces_merge_as_short_ones_do)
{
    uint32_t random = 1;
    for (size_t n = 100; n < 400; n += 3) {
        char text[400];
        for (size_t i = 0; i < n; i++) {
            random = random * 1664525u + 1013904223u;
            text[i] = "aaabbcx"[random >> 16 & 7 ? (random >> 16) % 7 : 0];
        }
        assert_merges_plainly(text, n);
    }
}

SPEC(bytes_without_a_token_vanish_and_their_neighbours_merge)
{
    assert_merges_plainly("axxb", 4);
    assert_merges_plainly("xx", 2);
}

SPEC(an_unknown_token_stands_for_each_byte_without_one_or_for_a_run_of_them)
{
    struct burin_bpe bpe = tiny_bpe();
    int32_t ids[8];
    size_t n;
    bpe.unknown = 99;

    assert_true(burin_bpe_encode(&bpe, (struct burin_span){ "axxbx", 5 }, NULL, ids, &n));
    assert_int_equal(n, 5);
    assert_int_equal(ids[1], 99);

    bpe.fuse_unknown = true;
    assert_true(burin_bpe_encode(&bpe, (struct burin_span){ "axxbx", 5 }, NULL, ids, &n));
    assert_int_equal(n, 4);
    assert_int_equal(ids[1], 99);
    assert_int_equal(ids[2], B);
    assert_int_equal(ids[3], 99);
}

SPEC(a_pair_that_is_listed_twice_has_its_last_rank)
{
    static _Alignas(64) char region[4096];
    struct burin_bpe bpe;
    int32_t ids[8];
    size_t n;
    burin_bpe_begin(&bpe, 3, region);
    bpe.byte_ids['a'] = A;
    bpe.byte_ids['b'] = B;
    bpe.byte_ids['c'] = C;
    burin_bpe_put(&bpe, A, B, 0, AB);
    burin_bpe_put(&bpe, B, C, 1, BC);
    burin_bpe_put(&bpe, A, B, 2, AB);

    assert_true(burin_bpe_encode(&bpe, (struct burin_span){ "abc", 3 }, NULL, ids, &n));

    assert_int_equal(n, 2); /* a bc */
    assert_int_equal(ids[1], BC);
}

SPEC(a_long_piece_gives_all_its_memory_back)
{
    const struct burin_bpe bpe = tiny_bpe();
    struct burin_arena arena = { 0 };
    char *text = malloc(100000);
    int32_t *ids = malloc(100000 * sizeof *ids);
    size_t n;
    memset(text, 'a', 100000);

    assert_true(
            burin_bpe_encode(&bpe, (struct burin_span){ text, 100000 }, &arena, ids, &n));

    assert_int_equal(n, 25000);
    assert_int_equal(ids[0], AAAA);
    assert_int_equal(strlen(spelled[ids[24999]]), 4);
    assert_int_equal(arena.obtained, 0);
    free(ids);
    free(text);
}
