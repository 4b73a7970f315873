% -- In: name, d (of a head), kv ("bf16"), window (true where rows don't see all that is before
% -- them). Queries and weights are bf16, too.
/* Two products a lane and instruction, exact and summed in f32; queries and the softmax's
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

% if window then
/* acc = acc * scale + weight . values, in up to 64 columns. Row r sees keys hidden[r] up to
 * seen[r]; what lies outside is not touched, or a stranger's NaN would get in. */
% else
/* acc = acc * scale + weight . values, in up to 64 columns. Row r sees seen[r] keys; what
 * lies behind is not touched, or a stranger's NaN would get in. */
% end
static inline __attribute__((always_inline)) void ${name}_pv(
        float *restrict acc, /* (n_rows, ${d}), from the first of the columns on */
        const uint16_t (*restrict weight)[64],
        const float *restrict scale,
        const uint32_t *restrict values,
% if window then
        const int *restrict hidden,
% end
        const int *restrict seen,
        const int n_rows,
        const int n_vectors,
        const __mmask16 columns) /* of each vector */
{
    const int all_see = seen[0], one_sees = seen[n_rows - 1];
% if window then
    const int ragged = burin_min((hidden[n_rows - 1] + 1) / 2 * 2, one_sees);
% end
    __m512 sum[6][4];
    int key = ${window and "hidden[0] / 2 * 2" or "0"};

#pragma GCC unroll 6
    for (int r = 0; r < n_rows; r++)
#pragma GCC unroll 4
        for (int c = 0; c < n_vectors; c++) {
            const __m512 old = _mm512_maskz_loadu_ps(columns, acc + r * ${d} + c * 16);
            sum[r][c] = _mm512_mul_ps(old, _mm512_set1_ps(scale[r]));
        }

% for _, stop in ipairs(window and { "ragged", "all", "one_sees" } or { "all", "one_sees" }) do
% if stop == "all" then
    for (; key + 1 < all_see; key += 2)
#pragma GCC unroll 4
        for (int c = 0; c < n_vectors; c++) {
            const uint32_t *at = values + key * ${d // 2} + c * 16;
            const __m512i pair = _mm512_maskz_loadu_epi32(columns, at);
#pragma GCC unroll 6
            for (int r = 0; r < n_rows; r++)
                sum[r][c] = burin_dot2(sum[r][c], pair, weight[r] + key);
        }

% else
    for (; key < ${stop}; key += 2)
#pragma GCC unroll 4
        for (int c = 0; c < n_vectors; c++) {
            const uint32_t *at = values + key * ${d // 2} + c * 16;
            const __m512i pair = _mm512_maskz_loadu_epi32(columns, at);
            const __m512i first = _mm512_and_si512(pair, _mm512_set1_epi32(0xffff));
% if window then
            const __m512i second = _mm512_andnot_si512(_mm512_set1_epi32(0xffff), pair);
% end
#pragma GCC unroll 6
% if window then
            for (int r = 0; r < n_rows; r++) {
                const bool low = key >= hidden[r] && key < seen[r];
                const bool high = key + 1 >= hidden[r] && key + 1 < seen[r];
                const __m512i both = low && high ? pair : low ? first : second;
                if (low || high)
                    sum[r][c] = burin_dot2(sum[r][c], both, weight[r] + key);
            }
% else
            for (int r = 0; r < n_rows; r++)
                if (key + 1 < seen[r])
                    sum[r][c] = burin_dot2(sum[r][c], pair, weight[r] + key);
                else if (key < seen[r])
                    sum[r][c] = burin_dot2(sum[r][c], first, weight[r] + key);
% end
        }

% end
% end
#pragma GCC unroll 6
    for (int r = 0; r < n_rows; r++)
#pragma GCC unroll 4
        for (int c = 0; c < n_vectors; c++)
            _mm512_mask_storeu_ps(acc + r * ${d} + c * 16, columns, sum[r][c]);
}
