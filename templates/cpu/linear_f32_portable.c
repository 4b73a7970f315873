% -- In: name, k (columns, as C spells it).
/* sums[row] = 32 outputs of each row: along k, one multiplication and addition after another. */
static void ${name}(
        float (*restrict sums)[32],
        const float *restrict panel, /* (${k}, 32) */
        const float *restrict x, /* (n_rows, ${k}) */
        int n_rows)
{
    for (int row = 0; row < n_rows; row++) {
        float sum[32] = { 0 };

        for (int i = 0; i < ${k}; i++)
            for (int out = 0; out < 32; out++)
                sum[out] += panel[i * 32 + out] * x[row * ${k} + i];
        memcpy(sums[row], sum, sizeof sum);
    }
}
