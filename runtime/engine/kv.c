#include "runtime/engine/kv.h"

#include <assert.h>

enum burin_status burin_kv_init(
        struct burin_kv *kv,
        struct burin_arena *arena,
        int n_pages,
        int page_tokens,
        int n_slots,
        int max_pages,
        struct burin_error *err)
{
    *kv = (struct burin_kv){
        .page_tokens = page_tokens,
        .n_pages = n_pages,
        .n_slots = n_slots,
        .max_pages = max_pages,
        .n_free = n_pages,
        .free = BURIN_TAKE(arena, (size_t)n_pages, int32_t),
        .table = BURIN_TAKE(arena, (size_t)n_slots * (size_t)max_pages, int32_t),
        .held = BURIN_TAKE(arena, (size_t)n_slots, int),
        .reserved = BURIN_TAKE(arena, (size_t)n_slots, int),
    };
    if (!kv->free || !kv->table || !kv->held || !kv->reserved)
        return burin_fail(
                err, BURIN_ENOMEM, "no memory for the tables of %d pages and %d sequences",
                n_pages, n_slots);
    for (int i = 0; i < n_pages; i++)
        kv->free[i] = n_pages - 1 - i; /* page 0 goes first */
    return BURIN_OK;
}

static int pages_for(const struct burin_kv *kv, int n_tokens)
{
    return n_tokens / kv->page_tokens + (n_tokens % kv->page_tokens != 0);
}

bool burin_kv_reserve(struct burin_kv *kv, int slot, int n_tokens)
{
    const int pages = pages_for(kv, n_tokens);
    assert(kv->held[slot] == 0 && kv->reserved[slot] == 0 && pages <= kv->max_pages);

    if (pages > kv->n_pages - kv->n_reserved)
        return false;
    kv->reserved[slot] = pages;
    kv->n_reserved += pages;
    return true;
}

void burin_kv_grow(struct burin_kv *kv, int slot, int n_tokens)
{
    const int pages = pages_for(kv, n_tokens);
    assert(pages <= kv->reserved[slot]);

    int32_t *table = kv->table + (size_t)slot * (size_t)kv->max_pages;
    while (kv->held[slot] < pages) {
        assert(kv->n_free > 0);
        table[kv->held[slot]++] = kv->free[--kv->n_free];
    }
}

void burin_kv_release(struct burin_kv *kv, int slot)
{
    const int32_t *table = burin_kv_table(kv, slot);
    while (kv->held[slot] > 0)
        kv->free[kv->n_free++] = table[--kv->held[slot]];
    kv->n_reserved -= kv->reserved[slot];
    kv->reserved[slot] = 0;
}

const int32_t *burin_kv_table(const struct burin_kv *kv, int slot)
{
    return kv->table + (size_t)slot * (size_t)kv->max_pages;
}
