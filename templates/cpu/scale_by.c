% -- In: name, d (last dim of x).
/* x = x * weight, a number that the checkpoint holds.   gen/ops/scale_by.lua */
static void ${name}(
        const struct burin_team *t,
        float *restrict x, /* (rows, ${d}) */
        const float *restrict weight, /* (1) */
        int n_rows)
{
    const struct burin_share rows = burin_share(t, n_rows);
    const float factor = weight[0];

    for (int row = rows.begin; row < rows.end; row++) {
        float *restrict to = x + (size_t)row * ${d};
        for (int i = 0; i < ${d}; i++)
            to[i] *= factor;
    }
}
