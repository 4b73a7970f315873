% -- In: name, d (last dim of x).
/* y = x[index], row by row.   gen/ops/rows.lua */
static void ${name}(
        const struct burin_team *t,
        float *restrict y, /* (rows, ${d}) */
        const float *restrict x, /* (tokens, ${d}) */
        const int32_t *restrict index, /* (rows) */
        int n_rows)
{
    const struct burin_share rows = burin_share(t, n_rows);

    for (int row = rows.begin; row < rows.end; row++) {
        const float *from = x + (size_t)index[row] * ${d};
        memcpy(y + (size_t)row * ${d}, from, ${d} * sizeof *y);
    }
}
