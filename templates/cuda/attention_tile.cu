% -- In: name.
/* What attention's kernels share whatever their sizes.   gen/ops/attention.lua */

/* The left operand of a product of 16 x 16 by 16 x 8, as a lane holds it: see mma_bf16. The order
 * of what is summed over is ours: the lane's part of a row is four neighbours, 4 q and up, in
 * words 0 and 2, and of the row 8 below in words 1 and 3. The right operand likewise. */
struct alignas(16) attention_fragment {
    u32 word[4];
};

/* Adjacent rows of a sequence, between two positions that are multiples of a tile's tokens. */
struct attention_tile {
    int sequence;
    int row;      /* its first one */
    int n_tokens; /* 0: there is no such tile */
    int position; /* of its first row; -1: rows that only fill up a graph */
};

/* Tiles lie in slots, those of sequence s from begin[s] / tokens + 2 s on: the first one, then
 * that which begins in each further `tokens` rows, if any. So a block finds its tile without
 * counting those before it, and rows / tokens + 2 sequences slots hold all of them. */
DEVICE struct attention_tile attention_tile_at(
        int slot, int tokens, const int *positions, const int *begin, int n_sequences)
{
    struct attention_tile tile = { 0, 0, 0, 0 };
    int sequence = 0;

    for (int end = n_sequences; end - sequence > 1;) {
        const int middle = (sequence + end) / 2;
        if (begin[middle] / tokens + 2 * middle <= slot)
            sequence = middle;
        else
            end = middle;
    }
    const int first = begin[sequence], end = begin[sequence + 1];
    if (first >= end)
        return tile;
    const int start = positions[first];
    const int to_first = (start < 0 ? 0 : start) - first; /* from a row to its position */
    const int before = slot - first / tokens - 2 * sequence; /* tiles of the sequence */
    int row = first;
    if (before > 0) {
        row = (first / tokens + before - 1) * tokens;
        row += -(row + to_first) & (tokens - 1);
        if (row <= first || row >= end)
            return tile;
    }
    const int in_tile = tokens - (row + to_first) % tokens;
    tile.sequence = sequence;
    tile.row = row;
    tile.n_tokens = in_tile < end - row ? in_tile : end - row;
    tile.position = start < 0 ? -1 : row + to_first;
    return tile;
}

/* Blocks of 64 keys that are reduced by themselves, for a query that sees all before it: a
 * function of its position alone, so that nobody's bits know who else is there. At most 16 of
 * such parts. */
DEVICE int attention_part_blocks(int position)
{
    int blocks = 2;
    while (blocks * 16 < position / 64 + 1)
        blocks *= 2;
    return blocks;
}

/* The lane's row in a tile of 16, and where it keeps column i of its four: lanes share columns out
 * in fours, and their products have the even ones before the odd ones. */
DEVICE int attention_row(int tile, int half)
{
    return tile * 16 + half * 8 + (int)(threadIdx.x % 32 / 4);
}

DEVICE int attention_place(int half, int i)
{
    return half * 2 + i % 2 * 4 + i / 2;
}

DEVICE float attention_nothing()
{
    return __uint_as_float(0xff800000u); /* minus infinity: the maximum of no scores */
}

/* What a total and a part, each relative to its own maximum, are multiplied by in their sum. */
DEVICE void attention_weigh_part(
        float *total_max, float part_max, float *of_total, float *of_part)
{
    const float max = fmaxf(*total_max, part_max);
    const float base = max == attention_nothing() ? 0.0f : max;

    *of_total = exp2f(*total_max - base);
    *of_part = exp2f(part_max - base);
    *total_max = max;
}
