% -- In: name.
/* Rows as one tile: column after column, 32 floats each.   gen/formats/f32.lua */
static void ${name}(
        uint8_t *restrict tile,
        const uint8_t *const *restrict rows, /* n_cols floats */
        int n_rows,                          /* 1 ... 32; the others become zeros */
        int64_t n_cols)
{
    memset(tile, 0, (size_t)n_cols * 32 * 4);
    for (int row = 0; row < n_rows; row++)
        for (int64_t col = 0; col < n_cols; col++)
            memcpy(tile + (col * 32 + row) * 4, rows[row] + col * 4, 4);
}
