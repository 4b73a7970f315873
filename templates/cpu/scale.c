% -- In: name, d (last dim of x), factor.
/* y = x * ${f32(factor)}, element by element. y may be x.   gen/ops/scale.lua */
static void ${name}(
        const struct burin_team *t,
        float *y, /* (rows, ${d}) */
        const float *x,
        int n_rows)
{
    const struct burin_share rows = burin_share(t, n_rows);

    for (int row = rows.begin; row < rows.end; row++) {
        const float *in = x + (size_t)row * ${d};
        float *to = y + (size_t)row * ${d};
        for (int i = 0; i < ${d}; i++)
            to[i] = in[i] * ${f32(factor)};
    }
}
