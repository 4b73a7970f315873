% -- In: name, weight (the format's module: q4_0 or q4_1).
% local w = weight
/* Rows of ${w.name:upper()} blocks as one tile: d, ${w.minimum and "m, " or ""}then nibbles, 4 bytes of a row at a time.
 * gen/formats/${w.name}.lua */
static void ${name}(
        uint8_t *restrict tile,
        const uint8_t *const *restrict rows, /* ${w.name:upper()} blocks of ${w.file_row_bytes(32)} bytes */
        int n_rows,                          /* 1 ... 32; the others become zeros */
        int64_t n_cols)
{
    enum { BLOCK = ${w.file_row_bytes(32)}, GROUP = ${w.group_bytes} };

    memset(tile, 0, (size_t)n_cols / 32 * GROUP);
    for (int row = 0; row < n_rows; row++)
        for (int64_t g = 0; g < n_cols / 32; g++) {
            const uint8_t *block = rows[row] + g * BLOCK;
            uint8_t *group = tile + g * GROUP;
            uint8_t *quants = group + ${w.quants_at} + row / 16 * 256 + row % 16 * 4;

            memcpy(group + row * 2, block, 2);
% if w.minimum then
            memcpy(group + 64 + row * 2, block + 2, 2);
% end
            for (int i = 0; i < 4; i++)
                memcpy(quants + i * 64, block + ${w.minimum and 4 or 2} + i * 4, 4);
        }
}
