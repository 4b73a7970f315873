% -- In: name, k (columns).
/* One row of a tile as floats.   gen/formats/q4_1.lua */
static inline void ${name}(
        float *restrict y, /* (${k}) */
        const uint8_t *restrict tile,
        int row) /* 0 ... 31 */
{
    const uint8_t *quants = tile + 128 + row / 16 * 256 + row % 16 * 4;

    for (int g = 0; g < ${k} / 32; g++) {
        const float d = burin_f32_of_f16(burin_load_u16(tile + g * 640 + row * 2));
        const float m = burin_f32_of_f16(burin_load_u16(tile + g * 640 + 64 + row * 2));
        for (int j = 0; j < 16; j++) {
            const int byte = quants[g * 640 + j / 4 * 64 + j % 4];
            y[g * 32 + j] = (float)(byte & 15) * d + m;
            y[g * 32 + 16 + j] = (float)(byte >> 4) * d + m;
        }
    }
}
