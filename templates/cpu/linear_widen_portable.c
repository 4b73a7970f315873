% -- In: name, weight (the format's module).
% local w = weight
/* Columns of a tile of ${w.name} as floats, as exact as ${w.name} is. */
static void ${name}(
        float *restrict panel, /* (n_cols, 32) */
        const uint8_t *restrict tile,
        int n_cols)
{
% if w.name == "f16" then
    for (int i = 0; i < n_cols * 32; i++)
        panel[i] = burin_f32_of_f16(burin_load_u16(tile + i * 2));
% elseif w.name == "bf16" then
    for (int i = 0; i < n_cols; i++)
        for (int row = 0; row < 32; row++)
            panel[i * 32 + row] = burin_f32_of_bf16(
                    burin_load_u16(tile + i / 2 * 128 + row * 4 + i % 2 * 2));
% else
    for (int group = 0; group < n_cols / 32; group++, tile += ${w.group_bytes}, panel += 32 * 32)
        for (int half = 0; half < 32; half += 16) {
            const uint8_t *quants = tile + ${w.quants_at} + half * ${w.nibbles and 16 or 32};
% if w.minimum then
            float d[16], m[16];
% else
            float d[16];
% end
            for (int row = 0; row < 16; row++) {
                d[row] = burin_f32_of_f16(burin_load_u16(tile + (half + row) * 2));
% if w.minimum then
                m[row] = burin_f32_of_f16(burin_load_u16(tile + 64 + (half + row) * 2));
% end
            }
            for (int i = 0; i < 32; i++) {
                float *out = panel + i * 32 + half;
% if w.nibbles then
                const uint8_t *four = quants + i % 16 / 4 * 64; /* columns, of each row */
                const int shift = i % 4 * 8 + i / 16 * 4;
                for (int row = 0; row < 16; row++) {
                    uint32_t bytes;
                    memcpy(&bytes, four + row * 4, sizeof bytes);
                    const int q = (int)(bytes >> shift & 15);
% if w.minimum then
                    out[row] = (float)q * d[row] + m[row];
% else
                    out[row] = (float)(q - 8) * d[row];
% end
                }
% else
                for (int row = 0; row < 16; row++)
                    out[row] = (float)(quants[i / 4 * 64 + row * 4 + i % 4] - 128) * d[row];
% end
            }
        }
% end
}
