% -- In: name, k (columns, as C spells it), k_value.
/* sums[row] = the tile's 32 outputs of each row, in f32: along k, one multiplication and
 * addition after another. */
static void ${name}(
        float (*restrict sums)[32],
        const uint8_t *restrict tile,
        const uint16_t *restrict x, /* (n_rows, ${k}) */
        int n_rows)
{
    for (int row = 0; row < n_rows; row++) {
        const uint16_t *in = x + row * ${k};
        float sum[32] = { 0 };

        for (int pair = 0; pair < ${k} / 2; pair++) {
            const float even = burin_f32_of_bf16(in[pair * 2]);
            const float odd = burin_f32_of_bf16(in[pair * 2 + 1]);
            for (int out = 0; out < 32; out++) {
                uint32_t w;
                memcpy(&w, tile + pair * 128 + out * 4, sizeof w);
                sum[out] += burin_f32_of_bits(w << 16) * even;
                sum[out] += burin_f32_of_bits(w & 0xffff0000) * odd;
            }
        }
% if k_value % 2 == 1 then
        const uint8_t *last = tile + ${k} / 2 * 128; /* paired with zeros */
        for (int out = 0; out < 32; out++)
            sum[out] += burin_f32_of_bf16(burin_load_u16(last + out * 4)) *
                        burin_f32_of_bf16(in[${k} - 1]);
% end
        memcpy(sums[row], sum, sizeof sum);
    }
}
