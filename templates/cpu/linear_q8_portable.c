% -- In: name, k (columns, as C spells it), weight (the format's module).
% local w = weight
/* sums[row] = a tile's 32 outputs of each row. For each group of 32 columns one exact integer
 * sum, and then sums += dot * x_scale * d${w.minimum and ", sums += x_sum * m" or ""}, whatever n_rows is. */
static void ${name}(
        float (*restrict sums)[32],
        const uint8_t *restrict tile, /* ${w.name}, gen/formats/${w.name}.lua */
        const uint8_t *restrict x, /* (n_rows, ${k}) as q8 */
        int n_rows)
{
    enum { GROUPS = ${k} / 32, STRIDE = (GROUPS * 40 + 63) / 64 * 64 };

    memset(sums, 0, (size_t)n_rows * sizeof *sums);
    for (int group = 0; group < GROUPS; group++, tile += ${w.group_bytes}) {
        int16_t q[32][32]; /* (columns, outputs) */
% if w.minimum then
        float d[32], m[32];
% else
        float d[32];
% end

        for (int out = 0; out < 32; out++) {
            d[out] = burin_f32_of_f16(burin_load_u16(tile + out * 2));
% if w.minimum then
            m[out] = burin_f32_of_f16(burin_load_u16(tile + 64 + out * 2)) / 128.0f;
% end
        }
        for (int i = 0; i < 32; i++)
            for (int out = 0; out < 32; out++) {
% if w.nibbles then
                const int half = out / 16 * 256;
                const int byte = tile[${w.quants_at} + half + i % 16 / 4 * 64 + out % 16 * 4 + i % 4];
                q[i][out] = (int16_t)((byte >> i / 16 * 4 & 15)${w.minimum and "" or " - 8"});
% else
                const int half = out / 16 * 512;
                const int byte = tile[${w.quants_at} + half + i / 4 * 64 + out % 16 * 4 + i % 4];
                q[i][out] = (int16_t)(byte - 128);
% end
            }

        for (int row = 0; row < n_rows; row++) {
            const uint8_t *from = x + row * STRIDE;
            const int8_t *in = (const int8_t *)from + group * 32;
            const float *x_scale = (const float *)(const void *)(from + ${k});
            int32_t dot[32] = { 0 };

            for (int i = 0; i < 32; i++)
                for (int out = 0; out < 32; out++)
                    dot[out] += q[i][out] * in[i];
            for (int out = 0; out < 32; out++) {
                sums[row][out] += (float)dot[out] * x_scale[group] * d[out];
% if w.minimum then
                sums[row][out] += x_scale[GROUPS + group] * m[out];
% end
            }
        }
    }
}
