% -- In: name, weight (the format's module: q4_0 or q4_1).
% local w = weight
/* Of a tile of ${w.name:upper()} weights the 32 columns of a group, as gen/cuda_tiles.lua says: nibbles
 * of 4 rows lie side by side, a word each, and so do their d${w.minimum and " and m" or ""}.   gen/formats/${w.name}.lua */
DEVICE void ${name}_load(u32 *words, const u8 *tile, int step, int lane)
{
    const u8 *group = tile + (size_t)step * ${w.group_bytes};

    load_words_4(words, group + ${w.quants_at} + lane / 16 * 256 + lane % 4 * 64 + lane / 4 % 4 * 16);
    load_words_2(words + 4, group + lane / 4 * 8);
% if w.minimum then
    load_words_2(words + 6, group + 64 + lane / 4 * 8);
% end
}

DEVICE void ${name}_pairs(u32 (*a)[2][4], const u32 *words)
{
    for (int row = 0; row < 4; row++) {
        const float d = half_float((u16)(words[4 + row / 2] >> row % 2 * 16));
% if w.minimum then
        const float m = half_float((u16)(words[6 + row / 2] >> row % 2 * 16));
% end

        for (int i = 0; i < 4; i++) { /* pairs of low nibbles, then of high ones */
            const u32 pair = words[row] >> (i / 2 * 4 + i % 2 * 16);
% if w.minimum then
            const float low = fmaf((float)(pair & 15), d, m);
            const float high = fmaf((float)(pair >> 8 & 15), d, m);
% else
            const float low = ((float)(pair & 15) - 8.0f) * d;
            const float high = ((float)(pair >> 8 & 15) - 8.0f) * d;
% end
            a[row / 2][i / 2][i % 2 * 2 + row % 2] = pack_bf16(low, high);
        }
    }
}

DEVICE float ${name}_at(const u8 *tile, int row, int column)
{
    const u8 *group = tile + (size_t)(column / 32) * ${w.group_bytes};
    const u8 *quants = group + ${w.quants_at} + row / 16 * 256 + row % 16 * 4;
    const int byte = quants[column % 16 / 4 * 64 + column % 4];
    const int q = column % 32 < 16 ? byte & 15 : byte >> 4;
% if w.minimum then
    const u16 *d = (const u16 *)group; /* of 32 rows, and behind them m */
    return fmaf((float)q, half_float(d[row]), half_float(d[32 + row]));
% else
    return (float)(q - 8) * half_float(((const u16 *)group)[row]);
% end
}
