% -- In: name, d (last dim of x).
/* x = x + weight, the same vector in every row.   gen/ops/add_vector.lua */
static void ${name}(
        const struct burin_team *t,
        float *restrict x, /* (rows, ${d}) */
        const float *restrict weight, /* (${d}) */
        int n_rows)
{
    const struct burin_share rows = burin_share(t, n_rows);

    for (int row = rows.begin; row < rows.end; row++) {
        float *restrict to = x + (size_t)row * ${d};
        for (int i = 0; i < ${d}; i++)
            to[i] += weight[i];
    }
}
