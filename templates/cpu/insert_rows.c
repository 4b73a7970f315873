% -- In: name, d (last dim of x).
/* Row i of x becomes table[index[i]]; it stays where index[i] is negative.
 * gen/ops/insert_rows.lua */
static void ${name}(
        const struct burin_team *t,
        float *restrict x, /* (rows, ${d}) */
        const uint16_t *restrict table, /* (n, ${d}) in bf16 */
        const int32_t *restrict index, /* (rows) */
        int n_rows)
{
    const struct burin_share rows = burin_share(t, n_rows);

    for (int row = rows.begin; row < rows.end; row++) {
        float *restrict to = x + (size_t)row * ${d};

        if (index[row] < 0)
            continue;
        const uint16_t *restrict from = table + (size_t)index[row] * ${d};
        for (int i = 0; i < ${d}; i++)
            to[i] = burin_f32_of_bf16(from[i]);
    }
}
