% -- In: name, part (struct of what is reduced), d (of a head), tiles (of 16 rows), ahead (products of
% -- scores whose keys may be on their way at once).
% local steps, units = (d + 15) // 16, (d + 63) // 64
/* One block of 64 keys and their values as they lie in a page: words are operands as they are,
 * two of neighbouring keys or columns are read at once. */
DEVICE void ${name}(
        struct ${part} *p,
        struct ${part}_shared *s,
        const u32 *keys, /* (${d} / 2, 64): pairs along the head */
        const u32 *values, /* (32, ${d}): pairs along the keys */
        int n_rows,
        int position, /* of the first key */
        int end, /* what is behind it may be anything, even NaN */
        int all_seen) /* by all rows */
{
    enum { D = ${d}, STEPS = ${steps}, UNITS = ${units}, TILES = ${tiles} };
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, q = lane % 4;
    float score[TILES][8];

    for (int t = 0; t < TILES; t++)
        for (int i = 0; i < 8; i++)
            score[t][i] = 0.0f;
#pragma unroll ${ahead}
    for (int step = 0; step < STEPS; step++) {
        const u32 *pair = keys + (step * 8 + q * 2) * 64 + warp * 16 + g * 2;
        u64 low = 0, high = 0;

        if (step * 16 + q * 4 < D) {
            low = *(const u64 *)pair;
            high = *(const u64 *)(pair + 64);
        }
        const u32 even[2] = { (u32)low, (u32)high };
        const u32 odd[2] = { (u32)(low >> 32), (u32)(high >> 32) };
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
        const int left = end - position - step * 16 - q * 4; /* keys that are there */
        const u32 first = left > 1 ? 0xffffffffu : left > 0 ? 0xffffu : 0u;
        const u32 second = left > 3 ? 0xffffffffu : left > 2 ? 0xffffu : 0u;
        struct attention_fragment weight[TILES];

#pragma unroll
        for (int t = 0; t < TILES; t++)
            if (t * 16 < n_rows)
                weight[t] = s->weight[step][t][lane];
#pragma unroll
        for (int u = 0; u < UNITS; u++) {
            const int column = (u * 4 + warp) * 16 + g * 2;
            const u32 *pair = values + (step * 8 + q * 2) * D + column;
            u64 low = 0, high = 0;

            if (column < D) {
                low = *(const u64 *)pair;
                high = *(const u64 *)(pair + D);
            }
            const u32 even[2] = { (u32)low & first, (u32)high & second };
            const u32 odd[2] = { (u32)(low >> 32) & first, (u32)(high >> 32) & second };
#pragma unroll
            for (int t = 0; t < TILES; t++)
                if (t * 16 < n_rows) {
                    mma_bf16(p->acc[t][u], weight[t].word, even);
                    mma_bf16(p->acc[t][u] + 4, weight[t].word, odd);
                }
        }
    }
}
