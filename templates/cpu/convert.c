% -- In: name, d (last dim of x), out ("bf16", "q8", "q8x2"), cpu ("avx512", "portable").
% local c_type = { bf16 = "uint16_t", q8 = "uint8_t", q8x2 = "uint8_t" }
% local q8_row = cpu == "avx512" and "burin_q8_row_x32" or "burin_q8_row"
/* y = x as ${out}, row by row.   gen/ops/convert.lua */
static void ${name}(
        const struct burin_team *t,
        ${c_type[out]} *restrict y, /* (rows, ${d}) as ${out} */
        const float *restrict x, /* (rows, ${d}) */
        int n_rows)
{
    const struct burin_share rows = burin_share(t, n_rows);

    for (int row = rows.begin; row < rows.end; row++) {
        const float *restrict in = x + (size_t)row * ${d};
% if out == "bf16" then
        uint16_t *restrict to = y + (size_t)row * ${d};
        for (int i = 0; i < ${d}; i++)
            to[i] = burin_bf16_of_f32(in[i]);
% elseif out == "q8" then
        uint8_t *restrict to = y + (size_t)row * burin_q8_stride(${d});
        ${q8_row}(to, in, ${d});
% else
        uint8_t *restrict to = y + (size_t)row * 2 * burin_q8_stride(${d});
        float rest[(${d} + 31) / 32 * 32]; /* groups of 32 may be read whole */
        ${q8_row}(to, in, ${d});
        burin_q8_rest(rest, to, in, ${d});
        ${q8_row}(to + burin_q8_stride(${d}), rest, ${d});
% end
    }
}
