% -- In: name, k (columns), weight (the format's module).
/* One row of a tile as floats.   gen/formats/q8_0.lua */
static inline void ${name}(
        float *restrict y, /* (${k}) */
        const uint8_t *restrict tile,
        int row) /* 0 ... 31 */
{
    const uint8_t *quants = tile + ${weight.quants_at} + row / 16 * 512 + row % 16 * 4;

    for (int g = 0; g < ${k} / 32; g++) {
        const float d = burin_f32_of_f16(burin_load_u16(tile + g * ${weight.group_bytes} + row * 2));
        for (int j = 0; j < 32; j++)
            y[g * 32 + j] = (float)(quants[g * ${weight.group_bytes} + j / 4 * 64 + j % 4] - 128) * d;
    }
}
