% -- In: name.
/* Rows of Q4_1 blocks as one tile: d, m, then nibbles, 4 bytes of a row at a time.
 * gen/formats/q4_1.lua */
static void ${name}(
        uint8_t *restrict tile,
        const uint8_t *const *restrict rows, /* Q4_1 blocks of 20 bytes */
        int n_rows,                          /* 1 ... 32; the others become zeros */
        int64_t n_cols)
{
    enum { BLOCK = 20, GROUP = 640 };

    memset(tile, 0, (size_t)n_cols / 32 * GROUP);
    for (int row = 0; row < n_rows; row++)
        for (int64_t g = 0; g < n_cols / 32; g++) {
            const uint8_t *block = rows[row] + g * BLOCK;
            uint8_t *group = tile + g * GROUP;
            uint8_t *quants = group + 128 + row / 16 * 256 + row % 16 * 4;

            memcpy(group + row * 2, block, 2);
            memcpy(group + 64 + row * 2, block + 2, 2);
            for (int i = 0; i < 4; i++)
                memcpy(quants + i * 64, block + 4 + i * 4, 4);
        }
}
