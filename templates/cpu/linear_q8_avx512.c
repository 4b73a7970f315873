% -- In: name, k (columns, as C spells it), weight (the format's module), x_stride (bytes of
% -- a row of x).
% local w = weight
/* Up to 8 rows of int8 times a tile of ${w.name:upper()}. Weights are bytes offset by 128, so that a
 * group of 32 columns is one exact integer sum (8 vpdpbusd), and then
 *
 *   sums += (${w.minimum and "dot * x_scale" or "dot * x_scale - x_sum"}) * d${w.minimum and "; sums += x_sum * m" or ""}
 *
 * in this order, whatever n_rows is. 16 sums, 8 vectors of weights and the steps are all
 * the registers there are. */
static inline __attribute__((always_inline)) void ${name}_rows(
        float (*restrict sums)[32],
        const uint8_t *restrict tile,
        const uint8_t *restrict x,
        const int n_rows)
{
    enum { GROUPS = ${k} / 32, STRIDE = ${x_stride} };
    __m512 sum[8][2];

#pragma GCC unroll 8
    for (int row = 0; row < n_rows; row++)
        sum[row][0] = sum[row][1] = _mm512_setzero_ps();

    for (int group = 0; group < GROUPS; group++, tile += ${w.group_bytes})
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) {
            burin_reload(); /* or x's scales stay in registers from half to half: sums spill */
            const uint8_t *quants = tile + ${w.quants_at};
            __m512i weights[8];

% if w.nibbles then
            /* Nibbles stay in the upper half of a byte: 16 q, and d is divided by 16. */
            const __m512i upper = _mm512_set1_epi8((char)0xf0);
            const __m512 d = _mm512_mul_ps(
                    burin_load_f16(tile + half * 32), _mm512_set1_ps(1.0f / 16.0f));
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
                const __m512i pair = _mm512_loadu_si512(quants + half * 256 + i * 64);
                weights[i] = _mm512_and_si512(_mm512_slli_epi16(pair, 4), upper);
                weights[4 + i] = _mm512_and_si512(pair, upper);
            }
% else
            const __m512 d = burin_load_f16(tile + half * 32);
#pragma GCC unroll 8
            for (int i = 0; i < 8; i++)
                weights[i] = _mm512_loadu_si512(quants + half * 512 + i * 64);
% end
% if w.minimum then
            const __m512 m = _mm512_mul_ps(
                    burin_load_f16(tile + 64 + half * 32), _mm512_set1_ps(1.0f / 128.0f));
% end

#pragma GCC unroll 8
            for (int row = 0; row < n_rows; row++) {
                const uint8_t *in = x + row * STRIDE;
                const float *x_scale = (const float *)(const void *)(in + ${k}) + group;
                const float *x_sum = x_scale + GROUPS;
                __m512i dot = _mm512_setzero_si512();
#pragma GCC unroll 8
                for (int i = 0; i < 8; i++)
                    dot = burin_dot4(dot, weights[i], in + group * 32 + i * 4);

                const __m512 whole = _mm512_cvtepi32_ps(dot);
% if w.minimum then
                const __m512 part = _mm512_mul_ps(whole, _mm512_set1_ps(*x_scale));
                sum[row][half] = _mm512_fmadd_ps(part, d, sum[row][half]);
                sum[row][half] = _mm512_fmadd_ps(m, _mm512_set1_ps(*x_sum), sum[row][half]);
% else
                const __m512 part = _mm512_fmsub_ps(
                        whole, _mm512_set1_ps(*x_scale), _mm512_set1_ps(*x_sum));
                sum[row][half] = _mm512_fmadd_ps(part, d, sum[row][half]);
% end
            }
        }

#pragma GCC unroll 8
    for (int row = 0; row < n_rows; row++) {
        _mm512_storeu_ps(sums[row], sum[row][0]);
        _mm512_storeu_ps(sums[row] + 16, sum[row][1]);
    }
}

/* sums[row] = the tile's 32 outputs of each of 1, 2, 4 or 8 rows. */
static void ${name}(
        float (*restrict sums)[32],
        const uint8_t *restrict tile,
        const uint8_t *restrict x, /* (n_rows, ${k}) as q8 */
        int n_rows)
{
    switch (n_rows) {
% for _, n in ipairs { 8, 4, 2, 1 } do
    case ${n}:
        ${name}_rows(sums, tile, x, ${n});
        break;
% end
    }
}
