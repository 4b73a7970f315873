% -- In: name, d (of a head), kv ("bf16", "f32"), window (true where rows don't see all that is
% -- before them).
% local element = kv == "bf16" and "uint32_t" or "float"
/* Each vector of keys is loaded and widened once for 6 multiplications. Sums run over d, and
 * then over keys, in order, so the bits of a row do not depend on the rows beside it. */

/* score[r][c] = q[r] . keys 16 c ... 16 c + 15.   24 accumulators, the queries from memory */
static inline __attribute__((always_inline)) void ${name}_qk(
        __m512 (*score)[4],
        const float *restrict q, /* (n_rows, ${d}) */
        const ${element} *restrict keys,
        const int n_rows)
{
    for (int r = 0; r < n_rows; r++)
        for (int c = 0; c < 4; c++)
            score[r][c] = _mm512_setzero_ps();

#pragma GCC unroll 1
    for (int i = 0; i < ${d}; i += 2)
#pragma GCC unroll 4
        for (int c = 0; c < 4; c++) {
% if kv == "bf16" then
            const __m512i pair = _mm512_loadu_si512(keys + i * 32 + c * 16);
            const __m512 even = burin_bf16_low_x16(pair);
            const __m512 odd = burin_bf16_high_x16(pair);
% else
            const __m512 even = _mm512_loadu_ps(keys + i * 64 + c * 16);
            const __m512 odd = _mm512_loadu_ps(keys + i * 64 + 64 + c * 16);
% end
#pragma GCC unroll 6
            for (int r = 0; r < n_rows; r++) {
                const float *at = q + r * ${d} + i;
                score[r][c] = _mm512_fmadd_ps(_mm512_set1_ps(at[0]), even, score[r][c]);
                score[r][c] = _mm512_fmadd_ps(_mm512_set1_ps(at[1]), odd, score[r][c]);
            }
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
        const float (*restrict weight)[64],
        const float *restrict scale,
        const ${element} *restrict values,
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
    int key = ${window and "hidden[0]" or "0"};

#pragma GCC unroll 6
    for (int r = 0; r < n_rows; r++)
#pragma GCC unroll 4
        for (int c = 0; c < n_vectors; c++) {
            const __m512 old = _mm512_maskz_loadu_ps(columns, acc + r * ${d} + c * 16);
            sum[r][c] = _mm512_mul_ps(old, _mm512_set1_ps(scale[r]));
        }

% local sees = window and "key >= hidden[r] && key < seen[r]" or "key < seen[r]"
% for _, stop in ipairs(window and { "ragged", "all", "one_sees" } or { "all", "one_sees" }) do
% if stop == "all" then
    for (; key + 1 < all_see; key += 2)
#pragma GCC unroll 4
        for (int c = 0; c < n_vectors; c++) {
            const ${element} *at = values + key * ${kv == "bf16" and d // 2 or d} + c * 16;
% if kv == "bf16" then
            const __m512i pair = _mm512_maskz_loadu_epi32(columns, at);
            const __m512 even = burin_bf16_low_x16(pair);
            const __m512 odd = burin_bf16_high_x16(pair);
% else
            const __m512 even = _mm512_maskz_loadu_ps(columns, at);
            const __m512 odd = _mm512_maskz_loadu_ps(columns, at + ${d});
% end
#pragma GCC unroll 6
            for (int r = 0; r < n_rows; r++) {
                const float *w = weight[r] + key;
                sum[r][c] = _mm512_fmadd_ps(_mm512_set1_ps(w[0]), even, sum[r][c]);
                sum[r][c] = _mm512_fmadd_ps(_mm512_set1_ps(w[1]), odd, sum[r][c]);
            }
        }

% else
    for (; key < ${stop}; key++)
#pragma GCC unroll 4
        for (int c = 0; c < n_vectors; c++) {
% if kv == "bf16" then
            const uint32_t *at = values + key / 2 * ${d} + c * 16;
            const __m512i pair = _mm512_maskz_loadu_epi32(columns, at);
            const __m512 value =
                    key % 2 ? burin_bf16_high_x16(pair) : burin_bf16_low_x16(pair);
% else
            const float *at = values + key * ${d} + c * 16;
            const __m512 value = _mm512_maskz_loadu_ps(columns, at);
% end
#pragma GCC unroll 6
            for (int r = 0; r < n_rows; r++) {
                const __mmask16 sees = ${sees} ? 0xffff : 0;
                sum[r][c] = _mm512_mask3_fmadd_ps(
                        _mm512_set1_ps(weight[r][key]), value, sum[r][c], sees);
            }
        }

% end
% end
#pragma GCC unroll 6
    for (int r = 0; r < n_rows; r++)
#pragma GCC unroll 4
        for (int c = 0; c < n_vectors; c++)
            _mm512_mask_storeu_ps(acc + r * ${d} + c * 16, columns, sum[r][c]);
}
