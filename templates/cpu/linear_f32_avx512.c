% -- In: name, k (columns of x, as C spells it).
/* Up to 8 rows of floats times 32 columns of floats: one fused multiply-add after another
 * along k, on to the sums that are there. */
static inline __attribute__((always_inline)) void ${name}_rows(
        float (*restrict sums)[32],
        const float *restrict panel,
        const float *restrict x,
        int n_cols,
        const int n_rows)
{
    __m512 sum[8][2];

#pragma GCC unroll 8
    for (int row = 0; row < n_rows; row++) {
        sum[row][0] = _mm512_loadu_ps(sums[row]);
        sum[row][1] = _mm512_loadu_ps(sums[row] + 16);
    }

    for (int i = 0; i < n_cols; i++) {
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

/* sums[row] += x[row] panel, for any number of rows. */
static void ${name}(
        float (*restrict sums)[32],
        const float *restrict panel, /* (n_cols, 32) */
        const float *restrict x, /* n_cols of each row of ${k} */
        int n_cols,
        int n_rows)
{
    for (int row = 0, n = 0; row < n_rows; row += n) {
        const float *in = x + (size_t)row * ${k};

        n = burin_rows_at_once(n_rows - row);
        switch (n) {
% for _, n in ipairs { 8, 4, 2, 1 } do
        case ${n}:
            ${name}_rows(sums + row, panel, in, n_cols, ${n});
            break;
% end
        }
    }
}
