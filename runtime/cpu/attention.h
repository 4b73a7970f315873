/* runtime/cpu/attention.h -- How attention is cut into pieces, and what a piece leaves.
 *
 * A tile is some adjacent rows of one sequence that lie in one block of 64 positions, so all
 * of them see the same blocks of keys (with a window: about the same). The keys of a tile are
 * cut into parts of whole blocks; where depends on the position alone. A part is reduced by
 * itself (online softmax, block after block) and then merged into those before it: whoever
 * computes it, the same bits. What a row does not see leaves its partials as they were.
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
    int position;    /* of its first row */
    int first_block; /* of those that its rows see; 0 without a window */
    int n_blocks;    /* behind the last one, which they see in part */
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
    int group;            /* query heads that share a KV head */
    int tile_rows;        /* at most; divides BURIN_BLOCK */
    int window;           /* keys that a row sees, itself included; 0: all before it */
    int part_blocks;      /* with a window; a constant of the model */
    const int32_t *spans; /* one past the last position a row sees, or NULL: its own. They
                             never go down from one row of a sequence to the next */
};

/* The positions that a row sees, with a window: from ... to - 1. */
static inline int burin_seen_from(const struct burin_attention *a, int row)
{
    const int first = a->positions[row] - a->window + 1;
    return first > 0 ? first : 0;
}

static inline int burin_seen_to(const struct burin_attention *a, int row)
{
    return a->spans ? a->spans[row] : a->positions[row] + 1;
}

/* The tile that begins at `row`. */
static inline struct burin_tile burin_tile_at(const struct burin_attention *a, int row)
{
    const int position = a->positions[row];
    const int sequence = a->sequence_of[row];
    const int in_sequence = a->sequence_begin[sequence + 1] - row;
    const int in_tile = a->tile_rows - position % a->tile_rows;
    struct burin_tile tile = {
        .row = row,
        .n_rows = in_tile < in_sequence ? in_tile : in_sequence,
        .sequence = sequence,
        .position = position,
        .n_blocks = position / BURIN_BLOCK + 1,
        .part_blocks = BURIN_MIN_PART_BLOCKS,
    };

    if (a->window) {
        const int to = burin_seen_to(a, row + tile.n_rows - 1);
        tile.first_block = burin_seen_from(a, row) / BURIN_BLOCK;
        tile.n_blocks = (to - 1) / BURIN_BLOCK + 1;
        tile.part_blocks = a->part_blocks;
    } else {
        while (tile.part_blocks * BURIN_MAX_PARTS < tile.n_blocks)
            tile.part_blocks *= 2;
    }
    const int skipped = tile.first_block / tile.part_blocks; /* parts nobody sees */
    const int n_parts = (tile.n_blocks + tile.part_blocks - 1) / tile.part_blocks - skipped;
    tile.n_parts = n_parts < BURIN_MAX_PARTS ? n_parts : BURIN_MAX_PARTS;
    return tile;
}

/* Rows of a tile, counted from its first. */
struct burin_rows {
    int begin;
    int end;
};

/* Those that see keys of a block, and which: from[row] ... to[row] - 1, within the block. With a
 * window. */
static inline struct burin_rows burin_rows_that_see(
        const struct burin_attention *a,
        const struct burin_tile *tile,
        int block,
        int *from, /* (tile->n_rows) */
        int *to)
{
    struct burin_rows rows = { 0, tile->n_rows };

    for (int row = 0; row < tile->n_rows; row++) {
        const int first = burin_seen_from(a, tile->row + row) - block * BURIN_BLOCK;
        const int stop = burin_seen_to(a, tile->row + row) - block * BURIN_BLOCK;
        from[row] = first > 0 ? first : 0;
        to[row] = stop < BURIN_BLOCK ? stop : BURIN_BLOCK;
        if (stop <= 0)
            rows.begin = row + 1; /* all before it end there or earlier */
        if (first >= BURIN_BLOCK && row < rows.end)
            rows.end = row; /* all behind it begin there or later */
    }
    if (rows.end < rows.begin)
        rows.end = rows.begin;
    return rows;
}

/* Loading a block of keys and values costs about as much as two more rows. */
static inline int64_t burin_block_cost(const struct burin_attention *a, int n_rows)
{
    return (int64_t)n_rows * a->group + 2;
}

static inline int64_t burin_tile_cost(
        const struct burin_attention *a, const struct burin_tile *tile)
{
    return (tile->n_blocks - tile->first_block) * burin_block_cost(a, tile->n_rows);
}

static inline int64_t burin_head_cost(const struct burin_attention *a)
{
    int64_t cost = 0;
    struct burin_tile tile;

    for (int row = 0; row < a->n_tokens; row += tile.n_rows) {
        tile = burin_tile_at(a, row);
        cost += burin_tile_cost(a, &tile);
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

/* The first block of part `part`, or the tile's end. Parts begin at multiples of their size. */
static inline int burin_part_begin(const struct burin_tile *tile, int part)
{
    const int block = (tile->first_block / tile->part_blocks + part) * tile->part_blocks;
    if (part >= tile->n_parts)
        return tile->n_blocks;
    return block < tile->first_block ? tile->first_block : block;
}

/* Where the middle of a part lies in the list. */
static inline int64_t burin_part_middle(
        const struct burin_attention *a,
        const struct burin_tile *tile,
        int64_t at,
        int part)
{
    const int blocks = burin_part_begin(tile, part) - tile->first_block +
                       burin_part_begin(tile, part + 1) - tile->first_block;
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

        w->at += burin_tile_cost(w->a, &tile);
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

/* The rows of a partial from `row` on. */
static inline struct burin_partial burin_partial_from(
        struct burin_partial p, int row, int d)
{
    return (struct burin_partial){ p.acc + (ptrdiff_t)row * d, p.max + row, p.sum + row };
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
        if (max == -INFINITY)
            continue; /* the row sees nothing of either */
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
