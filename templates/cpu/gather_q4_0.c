% -- In: name, k (columns).
/* One row of a tile as floats.   gen/formats/q4_0.lua */
static inline void ${name}(
        float *restrict y, /* (${k}) */
        const uint8_t *restrict tile,
        int row) /* 0 ... 31 */
{
    const uint8_t *quants = tile + 64 + row / 16 * 256 + row % 16 * 4;

    for (int g = 0; g < ${k} / 32; g++) {
        const float d = burin_f32_of_f16(burin_load_u16(tile + g * 576 + row * 2));
        for (int j = 0; j < 16; j++) {
            const int byte = quants[g * 576 + j / 4 * 64 + j % 4];
            y[g * 32 + j] = (float)((byte & 15) - 8) * d;
            y[g * 32 + 16 + j] = (float)((byte >> 4) - 8) * d;
        }
    }
}
