% -- In: name, weight (the format's module).
/* Of a tile of Q8_0 weights the 32 columns of a group, as gen/cuda_tiles.lua says: of 4 columns
 * the bytes of 4 rows lie side by side, a word each, and so do their d.   gen/formats/q8_0.lua */
DEVICE void ${name}_load(u32 *words, const u8 *tile, int step, int lane)
{
    const u8 *group = tile + (size_t)step * ${weight.group_bytes};
    const u8 *quants = group + ${weight.quants_at} + lane / 16 * 512 + lane / 4 % 4 * 16;

    load_words_4(words, quants + lane % 4 * 64);
    load_words_4(words + 4, quants + 256 + lane % 4 * 64);
    load_words_2(words + 8, group + lane / 4 * 8);
}

DEVICE void ${name}_pairs(u32 (*a)[2][4], const u32 *words)
{
    for (int row = 0; row < 4; row++) {
        const float d = half_float((u16)(words[8 + row / 2] >> row % 2 * 16));

        for (int i = 0; i < 4; i++) {
            const u32 pair = words[i / 2 * 4 + row] >> i % 2 * 16;
            const float low = ((float)(pair & 255) - 128.0f) * d;
            const float high = ((float)(pair >> 8 & 255) - 128.0f) * d;
            a[row / 2][i / 2][i % 2 * 2 + row % 2] = pack_bf16(low, high);
        }
    }
}

DEVICE float ${name}_at(const u8 *tile, int row, int column)
{
    const u8 *group = tile + (size_t)(column / 32) * ${weight.group_bytes};
    const u8 *quants = group + ${weight.quants_at} + row / 16 * 512 + row % 16 * 4;
    const int q = (int)quants[column % 32 / 4 * 64 + column % 4] - 128;
    return (float)q * half_float(((const u16 *)group)[row]);
}
