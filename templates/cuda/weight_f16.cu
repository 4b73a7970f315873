% -- In: name, k (columns).
% local tail = k % 32 ~= 0
/* Of a tile of halves 32 columns, from 32 * step on, as gen/cuda_tiles.lua says: of each
 * column 4 rows lie side by side. They are rounded to bf16.   gen/formats/f16.lua */
DEVICE void ${name}_load(u32 *words, const u8 *tile, int step, int lane)
{
    const u8 *rows = tile + lane / 4 * 8;

    for (int i = 0; i < 8; i++) {
        const int column = step * 32 + i / 4 * 16 + lane % 4 * 4 + i % 4;
% if tail then
        if (column >= ${k}) { /* behind the last column there are zeros */
            words[i * 2] = words[i * 2 + 1] = 0;
            continue;
        }
% end
        load_words_2(words + i * 2, rows + (size_t)column * 64);
    }
}

DEVICE void ${name}_pairs(u32 (*a)[2][4], const u32 *words)
{
    for (int i = 0; i < 4; i++)
        for (int row = 0; row < 4; row++) {
            const int at = i * 4 + row / 2; /* the next column is 2 words on */
            const int shift = row % 2 * 16;
            a[row / 2][i / 2][i % 2 * 2 + row % 2] = pack_bf16(
                    half_float((u16)(words[at] >> shift)),
                    half_float((u16)(words[at + 2] >> shift)));
        }
}

DEVICE float ${name}_at(const u8 *tile, int row, int column)
{
    return half_float(((const u16 *)tile)[column * 32 + row]);
}
