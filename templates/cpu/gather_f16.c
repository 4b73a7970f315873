% -- In: name, k (columns).
/* One row of a tile as floats.   gen/formats/f16.lua */
static inline void ${name}(
        float *restrict y, /* (${k}) */
        const uint8_t *restrict tile,
        int row) /* 0 ... 31 */
{
    for (int i = 0; i < ${k}; i++)
        y[i] = burin_f32_of_f16(burin_load_u16(tile + (i * 32 + row) * 2));
}
