#include "runtime/text/bpe.h"

#include "runtime/base/round.h"
#include "runtime/base/utf8.h"
#include "runtime/text/lexicon.h"

#include <string.h>

enum {
    ALIGN = 64,
    SHORT = 128 /* symbols up to which moving an array beats a heap */
};

/* At most two thirds full: most lookups are of pairs that do not merge. */
static int log2_slots(size_t n_merges)
{
    int log2 = 6;
    while (((size_t)1 << log2) < n_merges + n_merges / 2)
        log2++;
    return log2;
}

static size_t pairs_bytes(size_t n_merges)
{
    return burin_round_up(
            ((size_t)1 << log2_slots(n_merges)) * sizeof(struct burin_pair), ALIGN);
}

size_t burin_bpe_bytes(size_t n_merges)
{
    return pairs_bytes(n_merges) + burin_round_up(n_merges * sizeof(uint32_t), ALIGN);
}

void burin_bpe_begin(struct burin_bpe *bpe, size_t n_merges, void *region)
{
    const int log2 = log2_slots(n_merges);
    const size_t n = (size_t)1 << log2;

    *bpe = (struct burin_bpe){
        .shift = 64 - log2,
        .mask = (uint32_t)(n - 1),
        .pairs = region,
        .merged = (uint32_t *)((char *)region + pairs_bytes(n_merges)),
        .unknown = -1,
    };
    for (size_t i = 0; i < n; i++)
        bpe->pairs[i].rank = BURIN_NO_RANK;
}

static struct burin_pair *find_pair(
        const struct burin_bpe *bpe, uint32_t left, uint32_t right)
{
    const uint64_t key = (uint64_t)left << 32 | right;
    uint32_t i = (uint32_t)(key * 0x9E3779B97F4A7C15 >> bpe->shift);

    for (;;) {
        struct burin_pair *pair = &bpe->pairs[i];
        if (pair->rank == BURIN_NO_RANK || (pair->left == left && pair->right == right))
            return pair;
        i = (i + 1) & bpe->mask;
    }
}

void burin_bpe_put(
        struct burin_bpe *bpe, int32_t left, int32_t right, uint32_t rank, int32_t merged)
{
    struct burin_pair *pair = find_pair(bpe, (uint32_t)left, (uint32_t)right);
    *pair = (struct burin_pair){ (uint32_t)left, (uint32_t)right, rank };
    bpe->merged[rank] = (uint32_t)merged;
}

static uint32_t rank_of(const struct burin_bpe *bpe, uint32_t left, uint32_t right)
{
    return find_pair(bpe, left, right)->rank;
}

/* Bytes to their tokens. */
static size_t first_bytes(
        const struct burin_bpe *bpe, struct burin_span piece, uint32_t *ids)
{
    size_t n = 0;
    bool fused = false;

    for (size_t i = 0; i < piece.length; i++) {
        const int32_t id = bpe->byte_ids[(uint8_t)piece.at[i]];
        if (id >= 0)
            ids[n++] = (uint32_t)id;
        else if (bpe->unknown >= 0 && !fused)
            ids[n++] = (uint32_t)bpe->unknown;
        fused = id < 0 && bpe->fuse_unknown;
    }
    return n;
}

/* Can all bytes of this character stand in for it? */
static bool has_bytes(const struct burin_bpe *bpe, struct burin_span character)
{
    for (size_t i = 0; i < character.length; i++)
        if (bpe->byte_ids[(uint8_t)character.at[i]] < 0)
            return false;
    return bpe->byte_fallback;
}

/* Characters to their tokens. An unknown waits for what follows, as in the reference: bytes
 * that stand in go before it. */
static size_t first_characters(
        const struct burin_bpe *bpe, struct burin_span piece, uint32_t *ids)
{
    const char *const end = piece.at + piece.length;
    size_t n = 0;
    bool waits = false;

    for (const char *at = piece.at; at < end;) {
        struct burin_span character = { at, 0 };
        burin_utf8_next(&at);
        character.length = (size_t)(at - character.at);

        const int32_t id =
                burin_lexicon_find(bpe->lexicon, character, (struct burin_span){ 0 });
        if (id < 0 && has_bytes(bpe, character)) {
            for (size_t i = 0; i < character.length; i++)
                ids[n++] = (uint32_t)bpe->byte_ids[(uint8_t)character.at[i]];
        } else if (id < 0) {
            if (waits && !bpe->fuse_unknown)
                ids[n++] = (uint32_t)bpe->unknown;
            waits = bpe->unknown >= 0;
        } else {
            if (waits)
                ids[n++] = (uint32_t)bpe->unknown;
            waits = false;
            ids[n++] = (uint32_t)id;
        }
    }
    if (waits)
        ids[n++] = (uint32_t)bpe->unknown;
    return n;
}

static size_t first_ids(const struct burin_bpe *bpe, struct burin_span piece, uint32_t *ids)
{
    return bpe->lexicon ? first_characters(bpe, piece, ids) : first_bytes(bpe, piece, ids);
}

/* ---- Short pieces: arrays that close up ------------------------------------------- */

static size_t merge_short(const struct burin_bpe *bpe, uint32_t *ids, size_t n)
{
    uint32_t ranks[SHORT]; /* ranks[i] is of ids[i] and ids[i + 1] */

    for (size_t i = 0; i + 1 < n; i++)
        ranks[i] = rank_of(bpe, ids[i], ids[i + 1]);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (ranks[i] < ranks[best])
                best = i;
        if (ranks[best] == BURIN_NO_RANK)
            break;

        ids[best] = bpe->merged[ranks[best]];
        n--;
        memmove(ids + best + 1, ids + best + 2, (n - best - 1) * sizeof *ids);
        memmove(ranks + best, ranks + best + 1, (n - best - 1) * sizeof *ranks);
        if (best + 1 < n)
            ranks[best] = rank_of(bpe, ids[best], ids[best + 1]);
        if (best > 0)
            ranks[best - 1] = rank_of(bpe, ids[best - 1], ids[best]);
    }
    return n;
}

/* ---- Long pieces: a heap over a linked list ---------------------------------------- */

/* Pairs to merge, the most urgent first: rank in the upper half, place in the lower. An entry
 * whose pair has changed since is skipped when it comes up. */
struct heap {
    uint64_t *items;
    size_t n;
};

static void push(struct heap *heap, uint32_t rank, uint32_t place)
{
    const uint64_t item = (uint64_t)rank << 32 | place;
    size_t i = heap->n++;

    while (i > 0 && item < heap->items[(i - 1) / 4]) {
        heap->items[i] = heap->items[(i - 1) / 4];
        i = (i - 1) / 4;
    }
    heap->items[i] = item;
}

static uint64_t pop(struct heap *heap)
{
    const uint64_t top = heap->items[0];
    const uint64_t item = heap->items[--heap->n];
    size_t i = 0;

    for (;;) {
        const size_t first = 4 * i + 1;
        if (first >= heap->n)
            break;
        const size_t end = first + 4 < heap->n ? first + 4 : heap->n;
        size_t least = first;
        for (size_t child = first + 1; child < end; child++)
            if (heap->items[child] < heap->items[least])
                least = child;
        if (item <= heap->items[least])
            break;
        heap->items[i] = heap->items[least];
        i = least;
    }
    heap->items[i] = item;
    return top;
}

struct symbols {
    uint32_t *ids;
    uint32_t *previous;
    uint32_t *next;  /* n behind the last */
    uint32_t *ranks; /* of a symbol and the next; BURIN_NO_RANK also where it is gone */
    struct heap heap;
    size_t n;
};

static void watch(const struct burin_bpe *bpe, struct symbols *s, uint32_t place)
{
    const uint32_t next = s->next[place];
    const uint32_t rank =
            next < s->n ? rank_of(bpe, s->ids[place], s->ids[next]) : BURIN_NO_RANK;

    s->ranks[place] = rank;
    if (rank != BURIN_NO_RANK)
        push(&s->heap, rank, place);
}

static void merge_long(const struct burin_bpe *bpe, struct symbols *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        s->previous[i] = i - 1;
        s->next[i] = i + 1;
    }
    for (uint32_t i = 0; i < s->n; i++)
        watch(bpe, s, i);

    while (s->heap.n > 0) {
        const uint64_t top = pop(&s->heap);
        const uint32_t place = (uint32_t)top;
        const uint32_t rank = (uint32_t)(top >> 32);
        if (s->ranks[place] != rank)
            continue;

        const uint32_t gone = s->next[place];
        s->ids[place] = bpe->merged[rank];
        s->ranks[gone] = BURIN_NO_RANK;
        s->next[place] = s->next[gone];
        if (s->next[place] < s->n)
            s->previous[s->next[place]] = place;
        watch(bpe, s, place);
        if (place > 0)
            watch(bpe, s, s->previous[place]);
    }
}

static bool encode_long(
        const struct burin_bpe *bpe,
        struct burin_span piece,
        struct burin_arena *arena,
        int32_t *ids,
        size_t *n_ids)
{
    const struct burin_arena_mark mark = burin_arena_mark(arena);
    const size_t n = piece.length;
    /* Each merge takes one entry out and puts two in at most, and n - 1 are there to begin. */
    struct symbols s = {
        .ids = BURIN_TAKE(arena, n, uint32_t),
        .previous = BURIN_TAKE(arena, n, uint32_t),
        .next = BURIN_TAKE(arena, n, uint32_t),
        .ranks = BURIN_TAKE(arena, n, uint32_t),
        .heap.items = BURIN_TAKE(arena, 2 * n, uint64_t),
    };
    const bool has_memory = s.ids && s.previous && s.next && s.ranks && s.heap.items;

    *n_ids = 0;
    if (has_memory) {
        s.n = first_ids(bpe, piece, s.ids);
        merge_long(bpe, &s);
        for (uint32_t i = 0; i < s.n; i = s.next[i])
            ids[(*n_ids)++] = (int32_t)s.ids[i];
    }
    burin_arena_rewind(arena, mark);
    return has_memory;
}

bool burin_bpe_encode(
        const struct burin_bpe *bpe,
        struct burin_span piece,
        struct burin_arena *arena,
        int32_t *ids,
        size_t *n_ids)
{
    if (piece.length > SHORT)
        return encode_long(bpe, piece, arena, ids, n_ids);

    uint32_t symbols[SHORT];
    *n_ids = merge_short(bpe, symbols, first_ids(bpe, piece, symbols));
    for (size_t i = 0; i < *n_ids; i++)
        ids[i] = (int32_t)symbols[i];
    return true;
}
