% -- In: name, d (of a head), group (query heads for a KV head). The cache is bf16, and so are
% -- queries and weights here.
% local whole = d // 16 * 16
/* How one block of keys and values meets the rows of a tile, up to 6 at once, two products a
 * lane and instruction. Products are exact and summed in f32; queries and the softmax's
 * weights are rounded to bf16, as keys and values are. Sums run over d, and then over keys,
 * in order, so the bits of a row do not depend on the rows beside it. */

/* score[r][c] = q[r] . keys 16 c ... 16 c + 15.   24 accumulators, the queries from memory */
static inline __attribute__((always_inline)) void ${name}_qk(
        __m512 (*score)[4],
        const uint16_t *restrict q, /* (n_rows, ${d}) */
        const uint32_t *restrict keys,
        const int n_rows)
{
    for (int r = 0; r < n_rows; r++)
        for (int c = 0; c < 4; c++)
            score[r][c] = _mm512_setzero_ps();

#pragma GCC unroll 1
    for (int i = 0; i < ${d}; i += 2)
#pragma GCC unroll 4
        for (int c = 0; c < 4; c++) {
            const __m512i pair = _mm512_loadu_si512(keys + i * 32 + c * 16);
#pragma GCC unroll 6
            for (int r = 0; r < n_rows; r++)
                score[r][c] = burin_dot2(score[r][c], pair, q + r * ${d} + i);
        }
}

/* acc = acc * scale + weight . values, in up to 64 columns. Row r sees seen[r] keys; what
 * lies behind is not touched, or a stranger's NaN would get in. */
static inline __attribute__((always_inline)) void ${name}_pv(
        float *restrict acc, /* (n_rows, ${d}), from the first of the columns on */
        const uint16_t (*restrict weight)[64],
        const float *restrict scale,
        const uint32_t *restrict values,
        const int *restrict seen,
        const int n_rows,
        const int n_vectors,
        const __mmask16 columns) /* of each vector */
{
    const int all_see = seen[0], one_sees = seen[n_rows - 1];
    __m512 sum[6][4];
    int key = 0;

#pragma GCC unroll 6
    for (int r = 0; r < n_rows; r++)
#pragma GCC unroll 4
        for (int c = 0; c < n_vectors; c++) {
            const __m512 old = _mm512_maskz_loadu_ps(columns, acc + r * ${d} + c * 16);
            sum[r][c] = _mm512_mul_ps(old, _mm512_set1_ps(scale[r]));
        }

    for (; key + 1 < all_see; key += 2)
#pragma GCC unroll 4
        for (int c = 0; c < n_vectors; c++) {
            const uint32_t *at = values + key * ${d // 2} + c * 16;
            const __m512i pair = _mm512_maskz_loadu_epi32(columns, at);
#pragma GCC unroll 6
            for (int r = 0; r < n_rows; r++)
                sum[r][c] = burin_dot2(sum[r][c], pair, weight[r] + key);
        }

    for (; key < one_sees; key += 2)
#pragma GCC unroll 4
        for (int c = 0; c < n_vectors; c++) {
            const uint32_t *at = values + key * ${d // 2} + c * 16;
            const __m512i pair = _mm512_maskz_loadu_epi32(columns, at);
            const __m512i first = _mm512_and_si512(pair, _mm512_set1_epi32(0xffff));
#pragma GCC unroll 6
            for (int r = 0; r < n_rows; r++)
                if (key + 1 < seen[r])
                    sum[r][c] = burin_dot2(sum[r][c], pair, weight[r] + key);
                else if (key < seen[r])
                    sum[r][c] = burin_dot2(sum[r][c], first, weight[r] + key);
        }

#pragma GCC unroll 6
    for (int r = 0; r < n_rows; r++)
#pragma GCC unroll 4
        for (int c = 0; c < n_vectors; c++)
            _mm512_mask_storeu_ps(acc + r * ${d} + c * 16, columns, sum[r][c]);
}

/* Rows `first` to first + n_rows - 1 of the tile meet the block. */
static inline __attribute__((always_inline)) void ${name}_rows(
        const struct burin_partial p,
        const uint16_t *restrict q,
        const uint32_t *restrict k,
        const uint32_t *restrict v,
        int first,
        int visible,
        const int n_rows)
{
    const __mmask16 used = (__mmask16)((1u << n_rows) - 1);
    __m512 score[6][4];
    uint16_t weight[6][64];
    float max[16], scale[16];
    int seen[6];

    ${name}_qk(score, q + first * ${d}, k, n_rows);
#pragma GCC unroll 6
    for (int r = 0; r < n_rows; r++) {
        const int limit = visible + (first + r) / ${group};
        seen[r] = limit < BURIN_BLOCK ? limit : BURIN_BLOCK;
        const uint64_t mask = ~UINT64_C(0) >> (64 - seen[r]);
#pragma GCC unroll 4
        for (int c = 0; c < 4; c++)
            score[r][c] = _mm512_mask_mov_ps(
                    _mm512_set1_ps(-INFINITY), (__mmask16)(mask >> 16 * c), score[r][c]);
        max[r] = _mm512_reduce_max_ps(_mm512_max_ps(
                _mm512_max_ps(score[r][0], score[r][1]),
                _mm512_max_ps(score[r][2], score[r][3])));
    }

    const __m512 old_max = _mm512_maskz_loadu_ps(used, p.max + first);
    const __m512 new_max = _mm512_max_ps(old_max, _mm512_maskz_loadu_ps(used, max));
    _mm512_mask_storeu_ps(p.max + first, used, new_max);
    _mm512_storeu_ps(max, new_max);
    _mm512_storeu_ps(scale, burin_exp2_x16(_mm512_sub_ps(old_max, new_max)));

#pragma GCC unroll 6
    for (int r = 0; r < n_rows; r++) {
        __m512 sum = _mm512_setzero_ps();
#pragma GCC unroll 4
        for (int c = 0; c < 4; c += 2) {
            const __m512 top = _mm512_set1_ps(max[r]);
            const __m512 low = burin_exp2_x16(_mm512_sub_ps(score[r][c], top));
            const __m512 high = burin_exp2_x16(_mm512_sub_ps(score[r][c + 1], top));
            const __m512i narrow = (__m512i)_mm512_cvtne2ps_pbh(high, low);
            _mm512_storeu_si512(weight[r] + c * 16, narrow);
            sum = _mm512_add_ps(sum, burin_bf16_low_x16(narrow));
            sum = _mm512_add_ps(sum, burin_bf16_high_x16(narrow));
        }
        p.sum[first + r] = p.sum[first + r] * scale[r] + _mm512_reduce_add_ps(sum);
    }

    float *acc = p.acc + first * ${d};
% for at = 0, whole - 1, 64 do
% local n = math.min(4, (whole - at) // 16)
    ${name}_pv(acc + ${at}, weight, scale, v + ${at}, seen, n_rows, ${n}, 0xffff);
% end
% if whole < d then
    ${name}_pv(acc + ${whole}, weight, scale, v + ${whole}, seen, n_rows, 1, 0xff);
% end
}

/* All rows of a tile meet one block. Its first query sees `visible` keys of the block, each
 * further one sees one more, and none more than there are. */
static void ${name}(
        struct burin_partial p,
        const uint16_t *restrict q, /* (n_rows, ${d}): scores are in units of log 2 */
        const uint8_t *restrict keys, /* pairs along d, 64 keys: gen/ops/attention.lua */
        const uint8_t *restrict values, /* pairs along the keys */
        int n_rows,
        int visible)
{
    const uint32_t *k = (const uint32_t *)keys;
    const uint32_t *v = (const uint32_t *)values;
    const int n_passes = (n_rows + 5) / 6;

    for (int pass = 0; pass < n_passes; pass++) {
        const int first = n_rows * pass / n_passes;

        switch (n_rows * (pass + 1) / n_passes - first) {
% for n = 1, 6 do
        case ${n}:
            ${name}_rows(p, q, k, v, first, visible, ${n});
            break;
% end
        }
    }
}
