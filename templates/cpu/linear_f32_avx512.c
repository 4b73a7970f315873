% -- In: name, k (columns, as C spells it).
/* Up to 8 rows of floats times 32 columns of floats, one fused multiply-add after another
 * along k. */
static inline __attribute__((always_inline)) void ${name}_rows(
        float (*restrict sums)[32],
        const float *restrict panel,
        const float *restrict x,
        const int n_rows)
{
    __m512 sum[8][2];

#pragma GCC unroll 8
    for (int row = 0; row < n_rows; row++)
        sum[row][0] = sum[row][1] = _mm512_setzero_ps();

    for (int i = 0; i < ${k}; i++) {
        const __m512 low = _mm512_loadu_ps(panel + i * 32);
        const __m512 high = _mm512_loadu_ps(panel + i * 32 + 16);
#pragma GCC unroll 8
        for (int row = 0; row < n_rows; row++) {
            const __m512 in = _mm512_set1_ps(x[row * ${k} + i]);
            sum[row][0] = _mm512_fmadd_ps(low, in, sum[row][0]);
            sum[row][1] = _mm512_fmadd_ps(high, in, sum[row][1]);
        }
    }

#pragma GCC unroll 8
    for (int row = 0; row < n_rows; row++) {
        _mm512_storeu_ps(sums[row], sum[row][0]);
        _mm512_storeu_ps(sums[row] + 16, sum[row][1]);
    }
}

/* sums[row] = 32 outputs of each of 1, 2, 4 or 8 rows. */
static void ${name}(
        float (*restrict sums)[32],
        const float *restrict panel, /* (${k}, 32) */
        const float *restrict x, /* (n_rows, ${k}) */
        int n_rows)
{
    switch (n_rows) {
% for _, n in ipairs { 8, 4, 2, 1 } do
    case ${n}:
        ${name}_rows(sums, panel, x, ${n});
        break;
% end
    }
}
