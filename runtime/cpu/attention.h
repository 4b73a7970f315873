/* runtime/cpu/attention.h -- How attention is cut into pieces, and what a piece leaves.
 *
 * A tile is some adjacent rows of one sequence that lie in one block of 64 positions, so all
 * of them see the same blocks of keys. The keys of a tile are cut into parts of whole blocks;
 * where depends on the position alone. A part is reduced by itself (online softmax, block
 * after block) and then merged into those before it: whoever computes it, the same bits.
 *
 * Threads  The work is one list: for each KV head, for each tile, its parts. Every thread
 *          takes one adjacent piece of equal cost. Where the piece begins or ends within a
 *          tile, its partials stay in the thread's scratch; after a barrier the thread that
 *          has the tile's first part merges them.
 * Why      Decoding one token over a long context keeps all threads busy, prefill balances
 *          its triangle, and a ragged batch is neither's special case.
 * Source   Milakov and Gimelshein 2018, arXiv:1805.02867 (online softmax); Dao et al. 2023,
 *          "Flash-Decoding". */
#ifndef BURIN_CPU_ATTENTION_H
#define BURIN_CPU_ATTENTION_H

#include "runtime/cpu/exp2.h"
#include "runtime/cpu/team.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A page of the cache holds one block. */
enum { BURIN_BLOCK = 64, BURIN_MAX_PARTS = 16, BURIN_MIN_PART_BLOCKS = 2 };

struct burin_tile {
    int row; /* its first, in the batch */
    int n_rows;
    int sequence;
    int position; /* of its first row */
    int n_blocks; /* that its rows see, the last one in part */
    int part_blocks;
    int n_parts;
};

/* The batch, and how it is to be cut. */
struct burin_attention {
    const int32_t *positions;
    const int32_t *sequence_of;
    const int32_t *sequence_begin;
    int n_tokens;
    int n_kv_heads;
    int group;     /* query heads that share a KV head */
    int tile_rows; /* at most; divides BURIN_BLOCK */
};

/* The tile that begins at `row`. */
static inline struct burin_tile burin_tile_at(const struct burin_attention *a, int row)
{
    const int position = a->positions[row];
    const int sequence = a->sequence_of[row];
    const int in_sequence = a->sequence_begin[sequence + 1] - row;
    const int in_tile = a->tile_rows - position % a->tile_rows;
    const int n_blocks = position / BURIN_BLOCK + 1;
    int part_blocks = BURIN_MIN_PART_BLOCKS;

    while (part_blocks * BURIN_MAX_PARTS < n_blocks)
        part_blocks *= 2;
    return (struct burin_tile){
        .row = row,
        .n_rows = in_tile < in_sequence ? in_tile : in_sequence,
        .sequence = sequence,
        .position = position,
        .n_blocks = n_blocks,
        .part_blocks = part_blocks,
        .n_parts = (n_blocks + part_blocks - 1) / part_blocks,
    };
}

/* Loading a block of keys and values costs about as much as two more rows. */
static inline int64_t burin_block_cost(const struct burin_attention *a, int n_rows)
{
    return (int64_t)n_rows * a->group + 2;
}

static inline int64_t burin_head_cost(const struct burin_attention *a)
{
    int64_t cost = 0;
    struct burin_tile tile;

    for (int row = 0; row < a->n_tokens; row += tile.n_rows) {
        tile = burin_tile_at(a, row);
        cost += tile.n_blocks * burin_block_cost(a, tile.n_rows);
    }
    return cost;
}

/* Adjacent parts of one tile and KV head, all of one thread. */
struct burin_piece {
    struct burin_tile tile;
    int head;
    int first; /* parts first ... end - 1 */
    int end;
    int64_t at; /* cost of all that is before this tile in the list */
};

struct burin_walk {
    const struct burin_attention *a;
    int64_t total; /* cost of the list */
    int64_t head_cost;
    int64_t begin; /* this thread has the parts whose middle lies in [begin, end) */
    int64_t end;
    int head; /* next in the list */
    int row;
    int64_t at;
};

static inline int64_t burin_cost_share(int64_t total, int thread, int n_threads)
{
    return total / n_threads * thread + total % n_threads * thread / n_threads;
}

static inline struct burin_walk burin_walk_begin(
        const struct burin_team *t, const struct burin_attention *a)
{
    const int64_t head_cost = burin_head_cost(a);
    const int64_t total = head_cost * a->n_kv_heads;
    const int64_t begin = burin_cost_share(total, t->thread, t->n_threads);
    const int64_t skipped = head_cost ? begin / head_cost : 0; /* heads before it */

    return (struct burin_walk){
        .a = a,
        .total = total,
        .head_cost = head_cost,
        .begin = begin,
        .end = burin_cost_share(total, t->thread + 1, t->n_threads),
        .head = (int)skipped,
        .at = skipped * head_cost,
    };
}

/* The first block of part `part`, or the tile's end. */
static inline int burin_part_begin(const struct burin_tile *tile, int part)
{
    const int block = part * tile->part_blocks;
    return block < tile->n_blocks ? block : tile->n_blocks;
}

/* Where the middle of a part lies in the list. */
static inline int64_t burin_part_middle(
        const struct burin_attention *a,
        const struct burin_tile *tile,
        int64_t at,
        int part)
{
    const int blocks = burin_part_begin(tile, part) + burin_part_begin(tile, part + 1);
    return at + blocks * burin_block_cost(a, tile->n_rows) / 2;
}

/* The thread's next piece; false when there is none. */
static inline bool burin_walk_next(struct burin_walk *w, struct burin_piece *piece)
{
    while (w->head < w->a->n_kv_heads && w->at < w->end) {
        const struct burin_tile tile = burin_tile_at(w->a, w->row);
        int first = 0;

        while (first < tile.n_parts &&
               burin_part_middle(w->a, &tile, w->at, first) < w->begin)
            first++;
        int end = first;
        while (end < tile.n_parts && burin_part_middle(w->a, &tile, w->at, end) < w->end)
            end++;
        *piece = (struct burin_piece){
            .tile = tile, .head = w->head, .first = first, .end = end, .at = w->at
        };

        w->at += tile.n_blocks * burin_block_cost(w->a, tile.n_rows);
        w->row += tile.n_rows;
        if (w->row == w->a->n_tokens) {
            w->row = 0;
            w->head++;
        }
        if (first < end)
            return true;
    }
    return false;
}

/* The thread that has `part`, which comes after what thread `from` has. */
static inline int burin_part_thread(
        const struct burin_walk *w,
        const struct burin_piece *piece,
        int part,
        int from,
        int n_threads)
{
    const int64_t middle = burin_part_middle(w->a, &piece->tile, piece->at, part);
    while (middle >= burin_cost_share(w->total, from + 1, n_threads))
        from++;
    return from;
}

/* ---- What a part leaves: row r of a tile is query r / group, head r % group ------------
 *
 * A thread's scratch holds slots of these: the tile so far, the part in work, and the parts
 * of a tile that begins in an earlier thread's piece. */

enum {
    BURIN_SLOT_TOTAL,
    BURIN_SLOT_WORK,
    BURIN_SLOT_PARTS, /* BURIN_MAX_PARTS - 1 of them: the first part is never here */
    BURIN_N_SLOTS = BURIN_SLOT_PARTS + BURIN_MAX_PARTS - 1
};

struct burin_partial {
    float *acc; /* (rows, d): sum of 2^(score - max) * value */
    float *max; /* (rows): of the scores, in units of log 2 */
    float *sum; /* (rows): sum of 2^(score - max) */
};

/* The partial `offset` floats from the begin of a thread's scratch. */
static inline struct burin_partial burin_partial_at(
        uint8_t *scratch, int offset, int n_rows, int d)
{
    float *slot = (float *)(void *)scratch + offset;
    float *behind = slot + (ptrdiff_t)n_rows * d;

    return (struct burin_partial){ .acc = slot, .max = behind, .sum = behind + n_rows };
}

static inline void burin_partial_clear(struct burin_partial p, int n_rows, int d)
{
    for (int i = 0; i < n_rows * d; i++)
        p.acc[i] = 0.0f;
    for (int row = 0; row < n_rows; row++) {
        p.max[row] = -INFINITY;
        p.sum[row] = 0.0f;
    }
}

/* total = total and part together. */
static inline void burin_partial_merge(
        struct burin_partial total, struct burin_partial part, int n_rows, int d)
{
    for (int row = 0; row < n_rows; row++) {
        const float max = fmaxf(total.max[row], part.max[row]);
        const float a = burin_exp2(total.max[row] - max);
        const float b = burin_exp2(part.max[row] - max);
        float *restrict into = total.acc + (ptrdiff_t)row * d;
        const float *restrict from = part.acc + (ptrdiff_t)row * d;

        for (int i = 0; i < d; i++)
            into[i] = into[i] * a + from[i] * b;
        total.sum[row] = total.sum[row] * a + part.sum[row] * b;
        total.max[row] = max;
    }
}

#endif
