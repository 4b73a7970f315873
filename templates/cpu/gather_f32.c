% -- In: name, k (columns).
/* One row of a tile as floats.   gen/formats/f32.lua */
static inline void ${name}(
        float *restrict y, /* (${k}) */
        const uint8_t *restrict tile,
        int row) /* 0 ... 31 */
{
    for (int i = 0; i < ${k}; i++)
        memcpy(y + i, tile + (i * 32 + row) * 4, sizeof *y);
}
