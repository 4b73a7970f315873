% -- In: name, k (columns of x, as C spells it).
/* sums[row] += x[row] panel: along k, one multiplication and addition after another. */
static void ${name}(
        float (*restrict sums)[32],
        const float *restrict panel, /* (n_cols, 32) */
        const float *restrict x, /* n_cols of each row of ${k} */
        int n_cols,
        int n_rows)
{
    for (int row = 0; row < n_rows; row++) {
        const float *in = x + (size_t)row * ${k};
        float sum[32];

        memcpy(sum, sums[row], sizeof sum);
        for (int i = 0; i < n_cols; i++)
            for (int out = 0; out < 32; out++)
                sum[out] += panel[i * 32 + out] * in[i];
        memcpy(sums[row], sum, sizeof sum);
    }
}
