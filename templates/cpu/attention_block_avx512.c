% -- In: name, d (of a head), group (query heads for a KV head), kv ("bf16", "f32"), query
% -- ("float", "uint16_t" for bf16: the softmax's weights, too), products (the begin of two
% -- functions' names: attention_products_avx512*.c), window (true where rows don't see all that
% -- is before them).
% local element = kv == "bf16" and "uint32_t" or "float"
% local whole = d // 16 * 16
/* Rows `first` to first + n_rows - 1 of the tile meet the block. */
static inline __attribute__((always_inline)) void ${name}_rows(
        const struct burin_partial p,
        const ${query} *restrict q,
        const ${element} *restrict k,
        const ${element} *restrict v,
        int first,
% if window then
        const int *restrict from,
        const int *restrict to,
% else
        int visible,
% end
        const int n_rows)
{
    const __mmask16 used = (__mmask16)((1u << n_rows) - 1);
    __m512 score[6][4];
    ${query} weight[6][64];
    float max[16], scale[16];
    int ${window and "hidden[6], seen[6]" or "seen[6]"};

    ${products}_qk(score, q + first * ${d}, k, n_rows);
#pragma GCC unroll 6
    for (int r = 0; r < n_rows; r++) {
% if window then
        hidden[r] = from[(first + r) / ${group}];
        seen[r] = to[(first + r) / ${group}];
        const uint64_t mask = ~UINT64_C(0) >> (64 - seen[r]) & ~UINT64_C(0) << hidden[r];
% else
        const int limit = visible + (first + r) / ${group};
        seen[r] = limit < BURIN_BLOCK ? limit : BURIN_BLOCK;
        const uint64_t mask = ~UINT64_C(0) >> (64 - seen[r]);
% end
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
        const __m512 top = _mm512_set1_ps(max[r]);
% if query == "float" then
#pragma GCC unroll 4
        for (int c = 0; c < 4; c++) {
            score[r][c] = burin_exp2_x16(_mm512_sub_ps(score[r][c], top));
            _mm512_storeu_ps(weight[r] + c * 16, score[r][c]);
        }
        const __m512 sum = _mm512_add_ps(
                _mm512_add_ps(score[r][0], score[r][1]),
                _mm512_add_ps(score[r][2], score[r][3]));
% else
        __m512 sum = _mm512_setzero_ps();
#pragma GCC unroll 4
        for (int c = 0; c < 4; c += 2) {
            const __m512 low = burin_exp2_x16(_mm512_sub_ps(score[r][c], top));
            const __m512 high = burin_exp2_x16(_mm512_sub_ps(score[r][c + 1], top));
            const __m512i narrow = (__m512i)_mm512_cvtne2ps_pbh(high, low);
            _mm512_storeu_si512(weight[r] + c * 16, narrow);
            sum = _mm512_add_ps(sum, burin_bf16_low_x16(narrow));
            sum = _mm512_add_ps(sum, burin_bf16_high_x16(narrow));
        }
% end
        p.sum[first + r] = p.sum[first + r] * scale[r] + _mm512_reduce_add_ps(sum);
    }

    float *acc = p.acc + first * ${d};
% local open, deep, sees = "", "", "seen"
% if window then
% open, deep, sees = "\n            ", "\n                ", "hidden, seen"
% end
% local fours = whole // 64 * 64 -- columns that are done four vectors at a time
% if fours > 64 then
#pragma GCC unroll 1
    for (int at = 0; at < ${fours}; at += 64)
        ${products}_pv(${deep}acc + at, weight, scale, v + at, ${sees}, n_rows, 4, 0xffff);
% end
% for at = fours > 64 and fours or 0, whole - 1, 64 do
% local n = math.min(4, (whole - at) // 16)
    ${products}_pv(${open}acc + ${at}, weight, scale, v + ${at}, ${sees}, n_rows, ${n}, 0xffff);
% end
% if whole < d then
    ${products}_pv(${open}acc + ${whole}, weight, scale, v + ${whole}, ${sees}, n_rows, 1, 0xff);
% end
}

% if window then
/* Rows of a tile meet one block, up to 6 at once. Each sees some of its keys. */
% else
/* All rows of a tile meet one block, up to 6 at once. Its first query sees `visible` keys of the
 * block, each further one sees one more, and none more than there are. */
% end
static void ${name}(
        struct burin_partial p,
        const ${query} *restrict q, /* (n_rows, ${d}), scaled: scores in units of log 2 */
        const uint8_t *restrict keys, /* ${kv == "bf16" and "pairs along d, 64 keys" or "(d, 64)"}: gen/ops/attention.lua */
        const uint8_t *restrict values,
        int n_rows,
% if window then
        const int *restrict from, /* of each token: the first key that it sees */
        const int *restrict to) /* and one past the last */
% else
        int visible)
% end
{
    const ${element} *k = (const ${element} *)keys;
    const ${element} *v = (const ${element} *)values;
    const int n_passes = (n_rows + 5) / 6;

    for (int pass = 0; pass < n_passes; pass++) {
        const int first = n_rows * pass / n_passes;

        switch (n_rows * (pass + 1) / n_passes - first) {
% for n = 1, 6 do
        case ${n}:
            ${name}_rows(p, q, k, v, first, ${window and "from, to" or "visible"}, ${n});
            break;
% end
        }
    }
}
