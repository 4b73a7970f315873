/* runtime/engine/kv.h -- Which page of the KV pool holds which tokens.
 *
 * A page holds page_tokens tokens of one sequence, all layers. The key and value of position
 * p lie in page table[p / page_tokens], at slot p % page_tokens.
 *
 * Account  A sequence reserves what it may need at most before it begins, and takes pages as
 *          it grows, so that none runs out half-way:
 *              n_free + pages held by all == n_pages
 *              pages reserved by all <= n_pages, held <= reserved for each
 * Memory   Tables come from an arena at the start; nothing is allocated later.
 * Threads  One at a time. */
#ifndef BURIN_ENGINE_KV_H
#define BURIN_ENGINE_KV_H

#include "runtime/base/arena.h"
#include "runtime/base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct burin_kv {
    int page_tokens;
    int n_pages;
    int n_slots;   /* sequences at once */
    int max_pages; /* that one sequence may hold */
    int n_free;
    int n_reserved; /* by all slots */
    int32_t *free;  /* n_pages; the first n_free are free, the last of them goes next */
    int32_t *table; /* (n_slots, max_pages) */
    int *held;      /* (n_slots) */
    int *reserved;  /* (n_slots) */
};

enum burin_status burin_kv_init(
        struct burin_kv *kv,
        struct burin_arena *arena,
        int n_pages,
        int page_tokens,
        int n_slots,
        int max_pages,
        struct burin_error *err);

/* Promise a slot that holds nothing pages for n_tokens. False where others have too many
 * reserved, and nothing has changed then. */
bool burin_kv_reserve(struct burin_kv *kv, int slot, int n_tokens);

/* Let a slot hold pages for n_tokens in all; they are within its reservation. */
void burin_kv_grow(struct burin_kv *kv, int slot, int n_tokens);

/* Give back what a slot holds and has reserved. */
void burin_kv_release(struct burin_kv *kv, int slot);

/* Its pages; the first held[slot] entries mean something. */
const int32_t *burin_kv_table(const struct burin_kv *kv, int slot);

#endif
