% -- In: name, k (columns, as C spells it), k_value.
/* Up to 8 rows of bf16 times a tile of bf16: one vdpbf16ps for a pair of columns of 16
 * outputs, pairs in order. The instruction takes subnormals for zeros. */
static inline __attribute__((always_inline)) void ${name}_rows(
        float (*restrict sums)[32],
        const uint8_t *restrict tile,
        const uint16_t *restrict x,
        const int n_rows)
{
    __m512 sum[8][2];

#pragma GCC unroll 8
    for (int row = 0; row < n_rows; row++)
        sum[row][0] = sum[row][1] = _mm512_setzero_ps();

    for (int pair = 0; pair < ${k} / 2; pair++) {
        const __m512i low = _mm512_loadu_si512(tile + pair * 128);
        const __m512i high = _mm512_loadu_si512(tile + pair * 128 + 64);
#pragma GCC unroll 8
        for (int row = 0; row < n_rows; row++) {
            const uint16_t *in = x + row * ${k} + pair * 2;
            sum[row][0] = burin_dot2(sum[row][0], low, in);
            sum[row][1] = burin_dot2(sum[row][1], high, in);
        }
    }
% if k_value % 2 == 1 then

    /* The last column has no neighbour: the tile has zeros there, x the next row. */
    const __m512bh last_low = (__m512bh)_mm512_loadu_si512(tile + ${k} / 2 * 128);
    const __m512bh last_high = (__m512bh)_mm512_loadu_si512(tile + ${k} / 2 * 128 + 64);
#pragma GCC unroll 8
    for (int row = 0; row < n_rows; row++) {
        const __m512bh in = (__m512bh)_mm512_set1_epi32(x[row * ${k} + ${k} - 1]);
        sum[row][0] = _mm512_dpbf16_ps(sum[row][0], last_low, in);
        sum[row][1] = _mm512_dpbf16_ps(sum[row][1], last_high, in);
    }
% end

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
        const uint16_t *restrict x, /* (n_rows, ${k}) */
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
