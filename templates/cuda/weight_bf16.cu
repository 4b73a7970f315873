% -- In: name, k (columns).
% local tail = k % 32 ~= 0
/* Of a tile of bf16 weights 32 columns, from 32 * step on, as gen/cuda_tiles.lua says:
 * of each pair of columns 4 rows lie side by side.   gen/formats/bf16.lua */
DEVICE void ${name}_load(u32 *words, const u8 *tile, int step, int lane)
{
    const u8 *rows = tile + lane / 4 * 16;

    for (int i = 0; i < 4; i++) {
        const int pair = step * 16 + i / 2 * 8 + lane % 4 * 2 + i % 2;
% if tail then
        if (pair >= ${(k + 1) // 2}) { /* behind the last column there are zeros */
            for (int row = 0; row < 4; row++)
                words[i * 4 + row] = 0;
            continue;
        }
% end
        load_words_4(words + i * 4, rows + (size_t)pair * 128);
    }
}

DEVICE void ${name}_pairs(u32 (*a)[2][4], const u32 *words)
{
    for (int i = 0; i < 4; i++)
        for (int row = 0; row < 4; row++)
            a[row / 2][i / 2][i % 2 * 2 + row % 2] = words[i * 4 + row];
}

DEVICE float ${name}_at(const u8 *tile, int row, int column)
{
    return bf16_float(((const u16 *)tile)[(column / 2 * 32 + row) * 2 + column % 2]);
}
