% -- In: name, d (of a head), tiles (of 16 rows), heads (of a block: rows are token by token, and of
% -- each its heads), scale (of scores, in units of log 2).
% local steps, units, rows = (d + 15) // 16, (d + 63) // 64, 16 * tiles
/* Up to ${rows} queries of one KV head that four warps reduce together, in blocks of 64 keys: of
 * each block a warp has 16 keys; of the results it has 16 columns of each 64.
 * Milakov and Gimelshein 2018, arXiv:1805.02867; Dao et al. 2022, arXiv:2205.14135
 *
 * A lane's rows are lane / 4 and 8 below it, of each tile of 16. Where a product and a sum meet
 * the text says fmaf: what is equal in two kernels is then equal in bits. */
struct ${name} {
    float max[${tiles}][2]; /* of the scores so far, in units of log 2 */
    float sum[${tiles}][2]; /* of 2^(score - max), rounded to bf16, of the lane's keys */
    float acc[${tiles}][${units}][8]; /* of that times the values: even columns, then odd ones */
};

struct ${name}_shared {
    struct attention_fragment query[${steps}][${tiles}][32];
    struct attention_fragment weight[4][${tiles}][32]; /* of each warp's keys */
    float peak[4][${rows}]; /* of each warp's scores */
    float part_sum[4][${rows}]; /* of each warp's weights */
    float max[${rows}];
    float sum[${rows}];
    int from[${rows}]; /* a row sees positions from ... to - 1 */
    int to[${rows}];
};

DEVICE void ${name}_clear(struct ${name} *p)
{
    for (int t = 0; t < ${tiles}; t++)
        for (int half = 0; half < 2; half++) {
            p->max[t][half] = attention_nothing();
            p->sum[t][half] = 0.0f;
        }
    for (int t = 0; t < ${tiles}; t++)
        for (int u = 0; u < ${units}; u++)
            for (int i = 0; i < 8; i++)
                p->acc[t][u][i] = 0.0f;
}

/* Queries become operands; q is the first row's first head. */
DEVICE void ${name}_queries(
        struct ${name}_shared *s, const u16 *q, int q_stride, int n_rows)
{
    enum { D = ${d}, HEADS = ${heads}, STEPS = ${steps}, TILES = ${tiles} };

    for (int i = threadIdx.x; i < STEPS * TILES * 32; i += 128) {
        const int lane = i % 32, t = i / 32 % TILES, step = i / 32 / TILES;
        const int column = step * 16 + lane % 4 * 4;
        u64 part[2] = { 0, 0 };

        for (int half = 0; half < 2; half++) {
            const int row = t * 16 + half * 8 + lane / 4;
            const u16 *from = q + (size_t)(row / HEADS) * (size_t)q_stride;
            if (row < n_rows && column < D)
                part[half] = *(const u64 *)(from + row % HEADS * D + column);
        }
        for (int half = 0; half < 2; half++) {
            s->query[step][t][lane].word[half] = (u32)part[half];
            s->query[step][t][lane].word[half + 2] = (u32)(part[half] >> 32);
        }
    }
}

/* The scores of a block's keys become weights, relative to the maximum so far; what is summed
 * already is made so, too. A lane's four keys are neighbours: 0 and 2 of them in score[t][0] and
 * [1], 1 and 3 in [4] and [5]; of its second row two behind those. */
DEVICE void ${name}_weigh(
        struct ${name} *p,
        struct ${name}_shared *s,
        float (*score)[8],
        int n_rows,
        int position, /* of the block's first key */
        int all_seen) /* by all rows */
{
    enum { TILES = ${tiles}, UNITS = ${units} };
    const float scale = ${f32(scale)};
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int key = position + warp * 16 + lane % 4 * 4;

#pragma unroll
    for (int t = 0; t < TILES; t++) {
        if (t * 16 >= n_rows)
            break;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int row = attention_row(t, half);
            float *x = score[t] + half * 2;

            if (!all_seen) {
                const int from = s->from[row] - key, to = s->to[row] - key;
                x[0] = from <= 0 && to > 0 ? x[0] : attention_nothing();
                x[4] = from <= 1 && to > 1 ? x[4] : attention_nothing();
                x[1] = from <= 2 && to > 2 ? x[1] : attention_nothing();
                x[5] = from <= 3 && to > 3 ? x[5] : attention_nothing();
            }
            float peak = fmaxf(fmaxf(x[0], x[4]), fmaxf(x[1], x[5]));
            peak = fmaxf(peak, __shfl_xor_sync(0xffffffffu, peak, 1));
            peak = fmaxf(peak, __shfl_xor_sync(0xffffffffu, peak, 2));
            if (lane % 4 == 0)
                s->peak[warp][row] = peak;
        }
    }
    __syncthreads(); /* peaks are there, and nobody reads the weights of the block before */
#pragma unroll
    for (int t = 0; t < TILES; t++) {
        struct attention_fragment weight;

        if (t * 16 >= n_rows)
            break;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int row = attention_row(t, half);
            const float *x = score[t] + half * 2;
            float peak = fmaxf(s->peak[0][row], s->peak[1][row]);
            peak = fmaxf(peak, fmaxf(s->peak[2][row], s->peak[3][row]));
            const float max = fmaxf(p->max[t][half], peak * scale);
            const float base = max == attention_nothing() ? 0.0f : max;
            const float keep = exp2f(p->max[t][half] - base);
            float of[4];

            for (int i = 0; i < 4; i++)
                of[i] = exp2f(fmaf(x[i % 2 * 4 + i / 2], scale, -base));
            const u32 low = pack_bf16(of[0], of[1]), high = pack_bf16(of[2], of[3]);
            const float low_sum = low_bf16(low) + high_bf16(low);
            const float high_sum = low_bf16(high) + high_bf16(high);

            weight.word[half] = low;
            weight.word[half + 2] = high;
            p->sum[t][half] = fmaf(p->sum[t][half], keep, low_sum + high_sum);
            p->max[t][half] = max;
            for (int u = 0; u < UNITS; u++)
                for (int i = 0; i < 4; i++)
                    p->acc[t][u][attention_place(half, i)] *= keep;
        }
        s->weight[warp][t][lane] = weight;
    }
    __syncthreads(); /* weights are there, and all have read the peaks */
}

/* s->max and s->sum: of all rows, over all keys. Two barriers stand between one call and the
 * next: those of a block of keys. */
DEVICE void ${name}_reduce(
        const struct ${name} *p, struct ${name}_shared *s)
{
    enum { TILES = ${tiles} };
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int row = attention_row(t, half);
            float sum = p->sum[t][half];
            sum += __shfl_xor_sync(0xffffffffu, sum, 1);
            sum += __shfl_xor_sync(0xffffffffu, sum, 2);
            if (lane % 4 == 0)
                s->part_sum[warp][row] = sum;
            if (lane % 4 == 0 && warp == 0)
                s->max[row] = p->max[t][half];
        }
    __syncthreads();
    if (threadIdx.x < 16 * TILES) {
        const int row = threadIdx.x;
        const float first = s->part_sum[0][row] + s->part_sum[1][row];
        const float second = s->part_sum[2][row] + s->part_sum[3][row];
        s->sum[row] = first + second;
    }
    __syncthreads();
}
