/* Which page of the KV pool holds which tokens, and the account of them. */
#include "runtime/engine/kv.h"
#include "tests/support/test.h"

enum { PAGES = 11, PAGE_TOKENS = 4, SLOTS = 3, MAX_PAGES = 7 };

static struct burin_kv a_pool(struct burin_arena *arena)
{
    struct burin_kv kv;
    assert_int_equal(
            burin_kv_init(&kv, arena, PAGES, PAGE_TOKENS, SLOTS, MAX_PAGES, NULL),
            BURIN_OK);
    return kv;
}

/* Every page is free or in one table, once. */
static void assert_account(const struct burin_kv *kv)
{
    int seen[PAGES] = { 0 };
    int held = 0;
    int reserved = 0;
    for (int i = 0; i < kv->n_free; i++)
        seen[kv->free[i]]++;
    for (int slot = 0; slot < SLOTS; slot++) {
        held += kv->held[slot];
        reserved += kv->reserved[slot];
        assert_in_range(kv->held[slot], 0, kv->reserved[slot]);
        for (int i = 0; i < kv->held[slot]; i++)
            seen[burin_kv_table(kv, slot)[i]]++;
    }
    for (int page = 0; page < PAGES; page++)
        assert_int_equal(seen[page], 1);
    assert_int_equal(kv->n_free + held, PAGES);
    assert_int_equal(kv->n_reserved, reserved);
    assert_in_range(reserved, 0, PAGES);
}

SPEC(a_sequence_holds_a_page_for_every_begun_page_of_tokens)
{
    struct burin_arena arena = { 0 };
    struct burin_kv kv = a_pool(&arena);
    assert_true(burin_kv_reserve(&kv, 1, MAX_PAGES * PAGE_TOKENS));

    for (int n_tokens = 0; n_tokens <= MAX_PAGES * PAGE_TOKENS; n_tokens++) {
        burin_kv_grow(&kv, 1, n_tokens);
        assert_int_equal(kv.held[1], (n_tokens + PAGE_TOKENS - 1) / PAGE_TOKENS);
        assert_account(&kv);
    }
    burin_arena_close(&arena);
}

SPEC(pages_that_were_given_stay_where_they_are)
{
    struct burin_arena arena = { 0 };
    struct burin_kv kv = a_pool(&arena);
    burin_kv_reserve(&kv, 0, 20);
    burin_kv_reserve(&kv, 1, 20);
    burin_kv_grow(&kv, 0, 4);
    const int32_t first = burin_kv_table(&kv, 0)[0];

    burin_kv_grow(&kv, 1, 12);
    burin_kv_grow(&kv, 0, 20);

    assert_int_equal(burin_kv_table(&kv, 0)[0], first);
    burin_arena_close(&arena);
}

SPEC(what_is_reserved_is_there_whatever_others_do)
{
    struct burin_arena arena = { 0 };
    struct burin_kv kv = a_pool(&arena);
    assert_true(burin_kv_reserve(&kv, 0, 24));  /* 6 of 11 pages */
    assert_false(burin_kv_reserve(&kv, 1, 21)); /* 6 more */
    assert_int_equal(kv.n_reserved, 6);
    assert_true(burin_kv_reserve(&kv, 1, 20));
    assert_true(burin_kv_reserve(&kv, 2, 0));
    burin_kv_grow(&kv, 1, 20);

    burin_kv_grow(&kv, 0, 24);

    assert_int_equal(kv.n_free, 0);
    assert_account(&kv);
    burin_arena_close(&arena);
}

SPEC(released_pages_are_used_again)
{
    struct burin_arena arena = { 0 };
    struct burin_kv kv = a_pool(&arena);
    for (int round = 0; round < 20; round++) {
        assert_true(burin_kv_reserve(&kv, round % SLOTS, 28));
        burin_kv_grow(&kv, round % SLOTS, 28);
        burin_kv_release(&kv, round % SLOTS);
        assert_int_equal(kv.n_free, PAGES);
        assert_int_equal(kv.n_reserved, 0);
    }
    burin_kv_release(&kv, 0);
    assert_account(&kv);
    burin_arena_close(&arena);
}

SPEC(the_account_holds_after_every_step_of_a_long_life)
{
    struct burin_arena arena = { 0 };
    struct burin_kv kv = a_pool(&arena);
    int tokens[SLOTS] = { 0 };
    int most[SLOTS] = { 0 };
    unsigned random = 1;
    for (int step = 0; step < 5000; step++) {
        random = random * 1103515245u + 12345u;
        const int slot = (int)(random >> 16) % SLOTS;
        if (!most[slot]) {
            const int wanted = 1 + (int)(random >> 20) % 28;
            if (burin_kv_reserve(&kv, slot, wanted))
                most[slot] = wanted;
        } else if (tokens[slot] < most[slot]) {
            burin_kv_grow(&kv, slot, ++tokens[slot]);
        } else {
            burin_kv_release(&kv, slot);
            tokens[slot] = most[slot] = 0;
        }
        assert_account(&kv);
    }
    burin_arena_close(&arena);
}
