% -- In: name, d (last dim of x).
/* y = (x - bias) * scale.   gen/ops/standardize.lua */
static void ${name}(
        const struct burin_team *t,
        float *y, /* (rows, ${d}); may be x */
        const float *x, /* (rows, ${d}) */
        const float *bias, /* (${d}) */
        const float *scale, /* (${d}) */
        int n_rows)
{
    const struct burin_share rows = burin_share(t, n_rows);

    for (int row = rows.begin; row < rows.end; row++) {
        const float *in = x + (size_t)row * ${d};
        float *to = y + (size_t)row * ${d};
        for (int i = 0; i < ${d}; i++)
            to[i] = (in[i] - bias[i]) * scale[i];
    }
}
