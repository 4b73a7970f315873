% -- In: name, weight (the format's module).
/* Rows of Q8_0 blocks as one tile: d, then bytes offset by 128, 4 of a row at a time.
 * gen/formats/q8_0.lua */
static void ${name}(
        uint8_t *restrict tile,
        const uint8_t *const *restrict rows, /* Q8_0 blocks of ${weight.file_row_bytes(32)} bytes */
        int n_rows,                          /* 1 ... 32; the others become zeros */
        int64_t n_cols)
{
    enum { BLOCK = ${weight.file_row_bytes(32)}, GROUP = ${weight.group_bytes} };

    memset(tile, 0, (size_t)n_cols / 32 * GROUP); /* d = 0: any byte means 0 */
    for (int row = 0; row < n_rows; row++)
        for (int64_t g = 0; g < n_cols / 32; g++) {
            const uint8_t *block = rows[row] + g * BLOCK;
            uint8_t *group = tile + g * GROUP;
            uint8_t *quants = group + ${weight.quants_at} + row / 16 * 512 + row % 16 * 4;

            memcpy(group + row * 2, block, 2);
            for (int j = 0; j < 32; j++)
                quants[j / 4 * 64 + j % 4] = block[2 + j] ^ 0x80;
        }
}
