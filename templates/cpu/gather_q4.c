% -- In: name, k (columns), weight (the format's module: q4_0 or q4_1).
% local w = weight
/* One row of a tile as floats.   gen/formats/${w.name}.lua */
static inline void ${name}(
        float *restrict y, /* (${k}) */
        const uint8_t *restrict tile,
        int row) /* 0 ... 31 */
{
    for (int g = 0; g < ${k} / 32; g++) {
        const uint8_t *group = tile + g * ${w.group_bytes};
        const uint8_t *quants = group + ${w.quants_at} + row / 16 * 256 + row % 16 * 4;
        const float d = burin_f32_of_f16(burin_load_u16(group + row * 2));
% if w.minimum then
        const float m = burin_f32_of_f16(burin_load_u16(group + 64 + row * 2));
% end

        for (int j = 0; j < 16; j++) {
            const int byte = quants[j / 4 * 64 + j % 4];

% if w.minimum then
            y[g * 32 + j] = (float)(byte & 15) * d + m;
            y[g * 32 + 16 + j] = (float)(byte >> 4) * d + m;
% else
            y[g * 32 + j] = (float)((byte & 15) - 8) * d;
            y[g * 32 + 16 + j] = (float)((byte >> 4) - 8) * d;
% end
        }
    }
}
