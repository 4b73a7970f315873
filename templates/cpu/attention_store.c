% -- In: name, d (of a head), d_q (all heads), group (query heads for a KV head), out ("f32", "bf16",
% -- "q8").
% local c_type = { f32 = "float", bf16 = "uint16_t", q8 = "uint8_t" }
/* y = acc / sum, in the head's columns of each of the tile's rows. */
static void ${name}(
        ${c_type[out]} *restrict y,
        const struct burin_tile *tile,
        int head,
        struct burin_partial total)
{
    for (int r = 0; r < tile->n_rows * ${group}; r++) {
        const float inverse = 1.0f / total.sum[r];
        const size_t row = (size_t)(tile->row + r / ${group});
        const int column = (head * ${group} + r % ${group}) * ${d};
        const float *restrict acc = total.acc + r * ${d};
% if out == "q8" then
        uint8_t *restrict into = y + row * burin_q8_stride(${d_q});
        float *restrict scales = burin_q8_scales(into, ${d_q}) + column / 32;
        float *restrict sums = burin_q8_sums(into, ${d_q}) + column / 32;
        float x[${d}];

        for (int i = 0; i < ${d}; i++)
            x[i] = acc[i] * inverse;
        for (int g = 0; g < ${d} / 32; g++)
            burin_q8_group(
                    (int8_t *)into + column + g * 32, scales + g, sums + g, x + g * 32);
% else
        ${c_type[out]} *restrict into = y + row * ${d_q} + column;

        for (int i = 0; i < ${d}; i++)
% if out == "bf16" then
            into[i] = burin_bf16_of_f32(acc[i] * inverse);
% else
            into[i] = acc[i] * inverse;
% end
% end
    }
}
