/* runtime/text/bpe.h -- Byte pair encoding: the most urgent pair of neighbours is merged, the
 * leftmost of equals, until none is left.   Sennrich et al. 2016, arXiv:1508.07909
 *
 * It begins with bytes, or with characters where there is a lexicon of them (SentencePiece):
 * one that is no token falls into its bytes' tokens, or becomes the unknown one.
 *
 * Memory   A region of the caller's, burin_bpe_bytes() long. Encoding uses the stack up to 128
 *          bytes of text, and beyond it 32 bytes of an arena for each.
 * Time     O(n log n): a heap of pairs over a linked list. Nothing recurses.
 * Threads  Read-only once filled. */
#ifndef BURIN_TEXT_BPE_H
#define BURIN_TEXT_BPE_H

#include "runtime/base/arena.h"
#include "runtime/base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct burin_pair {
    uint32_t left;
    uint32_t right;
    uint32_t rank; /* BURIN_NO_RANK: an empty slot */
};
#define BURIN_NO_RANK UINT32_MAX

struct burin_lexicon;

struct burin_bpe {
    int32_t byte_ids[256];               /* -1: no token, the byte vanishes */
    const struct burin_lexicon *lexicon; /* of characters; NULL: it begins with bytes */
    bool byte_fallback;                  /* with a lexicon: byte_ids stand in */
    bool fuse_unknown;
    int32_t unknown; /* -1, or what stands for what has no token */
    int shift;
    uint32_t mask;
    struct burin_pair *pairs; /* by a hash of left and right */
    uint32_t *merged;         /* the id that a rank makes */
};

/* A multiple of 64. */
size_t burin_bpe_bytes(size_t n_merges);

/* No merges yet; the caller fills byte_ids and puts the merges. */
void burin_bpe_begin(struct burin_bpe *bpe, size_t n_merges, void *region);

/* The last rank counts where a pair comes twice, as in the reference. */
void burin_bpe_put(
        struct burin_bpe *bpe, int32_t left, int32_t right, uint32_t rank, int32_t merged);

/* The ids of one piece, at most one for each byte. False where the arena has no memory. */
bool burin_bpe_encode(
        const struct burin_bpe *bpe,
        struct burin_span piece,
        struct burin_arena *arena,
        int32_t *ids,
        size_t *n_ids);

#endif
