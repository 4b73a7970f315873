% -- In: name, k (columns).
% local tail = k % 32 ~= 0
/* Of a tile of floats 32 columns, from 32 * step on, as gen/cuda_tiles.lua says: of each
 * column 4 rows lie side by side. They are rounded to bf16.   gen/formats/f32.lua */
DEVICE void ${name}_load(u32 *words, const u8 *tile, int step, int lane)
{
    const u8 *rows = tile + lane / 4 * 16;

    for (int i = 0; i < 4; i++) {
        const int column = step * 32 + i / 2 * 16 + lane % 4 * 4 + i % 2 * 2;
        u32 even[4], odd[4];

        for (int row = 0; row < 4; row++)
            even[row] = odd[row] = 0;
% if tail then
        if (column < ${k}) /* behind the last column there are zeros */
            load_words_4(even, rows + (size_t)column * 128);
        if (column + 1 < ${k})
            load_words_4(odd, rows + (size_t)column * 128 + 128);
% else
        load_words_4(even, rows + (size_t)column * 128);
        load_words_4(odd, rows + (size_t)column * 128 + 128);
% end
        for (int row = 0; row < 4; row++)
            words[i * 4 + row] =
                    pack_bf16(__uint_as_float(even[row]), __uint_as_float(odd[row]));
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
    return ((const float *)tile)[column * 32 + row];
}
