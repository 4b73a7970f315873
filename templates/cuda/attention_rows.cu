% -- In: name, part (struct of what is reduced), d (of a head), tiles (of 16 rows), ahead (products of
% -- scores whose keys may be on their way at once), window (tokens of the ring; 0: there is none).
% local steps, units = (d + 15) // 16, (d + 63) // 64
/* Keys and values of one head, token by token${window > 0 and ": of positions before `start` in a ring, from it on" or ""}. */
struct ${name}_source {
% if window > 0 then
    const u16 *ring; /* (${window}, 2 * ${d}): p at p % ${window}, each key and then its value */
    int start;
% end
    const u16 *k; /* row 0 is ${window > 0 and "at `start`" or "position 0"} */
    const u16 *v;
    int k_stride;
    int v_stride;
    int from; /* nothing but positions from ... to - 1 is read */
    int to;
};

/* Where a position's key lies, or NULL. */
DEVICE const u16 *${name}_key(
        const struct ${name}_source *source, int position)
{
    if (position < source->from || position >= source->to)
        return 0;
% if window > 0 then
    if (position < source->start)
        return source->ring + (size_t)(position % ${window}) * ${2 * d};
    position -= source->start;
% end
    return source->k + (size_t)position * (size_t)source->k_stride;
}

DEVICE const u16 *${name}_value(
        const struct ${name}_source *source, int position)
{
    if (position < source->from || position >= source->to)
        return 0;
% if window > 0 then
    if (position < source->start)
        return source->ring + (size_t)(position % ${window}) * ${2 * d} + ${d};
    position -= source->start;
% end
    return source->v + (size_t)position * (size_t)source->v_stride;
}

/* One block of 64 keys and their values. Four neighbours of a key are an operand; those of
 * values are put together from four tokens. */
DEVICE void ${name}(
        struct ${part} *p,
        struct ${part}_shared *s,
        const struct ${name}_source *source,
        int n_rows,
        int position, /* of the first key */
        int all_seen) /* by all rows */
{
    enum { D = ${d}, STEPS = ${steps}, UNITS = ${units}, TILES = ${tiles} };
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, q = lane % 4;
    const int key = position + warp * 16 + g * 2;
    const u16 *first = ${name}_key(source, key);
    const u16 *second = ${name}_key(source, key + 1);
    float score[TILES][8];

    for (int t = 0; t < TILES; t++)
        for (int i = 0; i < 8; i++)
            score[t][i] = 0.0f;
#pragma unroll ${ahead}
    for (int step = 0; step < STEPS; step++) {
        const int column = step * 16 + q * 4;
        const u64 low = first && column < D ? *(const u64 *)(first + column) : 0;
        const u64 high = second && column < D ? *(const u64 *)(second + column) : 0;
        const u32 even[2] = { (u32)low, (u32)(low >> 32) };
        const u32 odd[2] = { (u32)high, (u32)(high >> 32) };
#pragma unroll
        for (int t = 0; t < TILES; t++)
            if (t * 16 < n_rows) {
                const struct attention_fragment query = s->query[step][t][lane];
                mma_bf16(score[t], query.word, even);
                mma_bf16(score[t] + 4, query.word, odd);
            }
    }
    ${part}_weigh(p, s, score, n_rows, position, all_seen);

#pragma unroll
    for (int step = 0; step < 4; step++) {
        const u16 *token[4];
        struct attention_fragment weight[TILES];

#pragma unroll
        for (int i = 0; i < 4; i++)
            token[i] = ${name}_value(source, position + step * 16 + q * 4 + i);
#pragma unroll
        for (int t = 0; t < TILES; t++)
            if (t * 16 < n_rows)
                weight[t] = s->weight[step][t][lane];
#pragma unroll
        for (int u = 0; u < UNITS; u++) {
            const int column = (u * 4 + warp) * 16 + g * 2;
            u32 of[4], even[2], odd[2]; /* two columns of a token, and of two tokens */

#pragma unroll
            for (int i = 0; i < 4; i++)
                of[i] = token[i] && column < D ? *(const u32 *)(token[i] + column) : 0;
#pragma unroll
            for (int i = 0; i < 2; i++) {
                even[i] = (of[i * 2] & 0xffffu) | of[i * 2 + 1] << 16;
                odd[i] = of[i * 2] >> 16 | (of[i * 2 + 1] & 0xffff0000u);
            }
#pragma unroll
            for (int t = 0; t < TILES; t++)
                if (t * 16 < n_rows) {
                    mma_bf16(p->acc[t][u], weight[t].word, even);
                    mma_bf16(p->acc[t][u] + 4, weight[t].word, odd);
                }
        }
    }
}
