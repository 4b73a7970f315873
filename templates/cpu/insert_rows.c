% -- In: name, d (last dim of x).
/* Row i of x becomes table[index[i]]; it stays where index[i] is negative.
 * gen/ops/insert_rows.lua */
static void ${name}(
        const struct burin_team *t,
        float *restrict x, /* (rows, ${d}) */
        const float *restrict table, /* (n, ${d}) */
        const int32_t *restrict index, /* (rows) */
        int n_rows)
{
    const struct burin_share rows = burin_share(t, n_rows);

    for (int row = rows.begin; row < rows.end; row++) {
        float *restrict to = x + (size_t)row * ${d};

        if (index[row] >= 0)
            memcpy(to, table + (size_t)index[row] * ${d}, ${d} * sizeof *x);
    }
}
