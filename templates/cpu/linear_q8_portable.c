% -- In: name, k (columns, as C spells it), weight (the format's module), x_stride (bytes of
% -- a row of x).
% local w = weight
% local n_bits, zero, step = w.nibbles and 4 or 8, w.nibbles and 8 or 128, w.nibbles and 16 or 32
% local integer = w.nibbles and "int16_t" or "int32_t"
% local room = w.nibbles and "no overflow: 32 * 8 * 127 < 2^15" or "a product needs 15 bits"
% local then_m = w.minimum and ", sums += x_sum * m" or ""
/* sums[row] = a tile's 32 outputs of each row. For each group of 32 columns one exact integer
 * sum, and then sums += dot * x_scale * d${then_m}, whatever n_rows is. */
static void ${name}(
        float (*restrict sums)[32],
        const uint8_t *restrict tile, /* ${w.name}, gen/formats/${w.name}.lua */
        const uint8_t *restrict x, /* (n_rows, ${k}) as q8 */
        int n_rows)
{
    enum { GROUPS = ${k} / 32, STRIDE = ${x_stride} };

    memset(sums, 0, (size_t)n_rows * sizeof *sums);
    for (int group = 0; group < GROUPS; group++, tile += ${w.group_bytes}) {
        int16_t q[32][32]; /* (columns, outputs), ${zero} subtracted */
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
            for (int half = 0; half < 32; half += 16) {
                const uint8_t *quants = tile + ${w.quants_at} + half * ${step};
% if w.nibbles then
                const int at = i % 16 / 4 * 64, shift = i % 4 * 8 + i / 16 * 4;
% else
                const int at = i / 4 * 64, shift = i % 4 * 8;
% end
                for (int out = 0; out < 16; out++) {
                    uint32_t four; /* columns */
                    memcpy(&four, quants + at + out * 4, sizeof four);
                    q[i][half + out] = (int16_t)((four >> shift & ${(1 << n_bits) - 1}) - ${zero});
                }
            }

        for (int row = 0; row < n_rows; row++) {
            const uint8_t *x_row = x + row * STRIDE;
            const int8_t *in = (const int8_t *)x_row + group * 32;
            const float *x_scale = (const float *)(const void *)(x_row + ${k});
            ${integer} dot[32] = { 0 }; /* ${room} */

            for (int i = 0; i < 32; i++)
                for (int out = 0; out < 32; out++)
                    dot[out] += (${integer})(q[i][out] * in[i]);
% if w.minimum then

            int total = 0;
            for (int i = 0; i < 32; i++)
                total += in[i];
            for (int out = 0; out < 32; out++) {
                const float whole = (float)(dot[out] + ${zero} * total);
                sums[row][out] += whole * x_scale[group] * d[out];
                sums[row][out] += x_scale[GROUPS + group] * m[out];
            }
% else

            for (int out = 0; out < 32; out++)
                sums[row][out] += (float)dot[out] * x_scale[group] * d[out];
% end
        }
    }
}
