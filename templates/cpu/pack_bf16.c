% -- In: name.
/* Rows as one tile: pairs of columns, in each the pairs of 32 rows.
 * gen/formats/bf16.lua */
static void ${name}(
        uint8_t *restrict tile,
        const uint8_t *const *restrict rows, /* n_cols bf16 */
        int n_rows,                          /* 1 ... 32; the others become zeros */
        int64_t n_cols)
{
    memset(tile, 0, (size_t)(n_cols + 1) / 2 * 128);
    for (int row = 0; row < n_rows; row++)
        for (int64_t col = 0; col < n_cols; col++)
            memcpy(tile + (col / 2 * 64 + row * 2 + col % 2) * 2, rows[row] + col * 2, 2);
}
