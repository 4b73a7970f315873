% -- In: name, d (last dim of x), eps, out ("f32", "bf16", "q8", "q8x2"), cpu ("avx512", "portable"),
% -- weight (whether there is one), offset (what it lacks: 0 or 1).
% local c_type = { f32 = "float", bf16 = "uint16_t", q8 = "uint8_t", q8x2 = "uint8_t" }
% local q8_row = cpu == "avx512" and "burin_q8_row_x32" or "burin_q8_row"
% local said = not weight and "" or offset == 0 and " * weight" or " * (" .. f32(offset) .. " + weight)"
% local times = said:gsub("weight", "weight[i]")
/* y = x / sqrt(mean(x^2) + eps)${said}, row by row.   gen/ops/rms_norm.lua
 * 32 partial sums let the compiler use its widest vectors (5 times faster than one) and fix
 * the order of summation. */
static void ${name}(
        const struct burin_team *t,
        ${c_type[out]} *restrict y, /* (rows, ${d}) as ${out} */
        const float *restrict x, /* (rows, ${d}) */
% if weight then
        const float *restrict weight, /* (${d}) */
% end
        int n_rows)
{
    const struct burin_share rows = burin_share(t, n_rows);

    for (int row = rows.begin; row < rows.end; row++) {
        const float *restrict in = x + (size_t)row * ${d};
        float part[32] = { 0 };

        for (int i = 0; i < ${d} / 32 * 32; i += 32)
            for (int lane = 0; lane < 32; lane++)
                part[lane] += in[i + lane] * in[i + lane];
        for (int i = ${d} / 32 * 32; i < ${d}; i++)
            part[i % 32] += in[i] * in[i];

        const float scale = 1.0f / sqrtf(burin_fold32(part) / ${d} + ${f32(eps)});
% if out == "f32" then
        float *restrict to = y + (size_t)row * ${d};
        for (int i = 0; i < ${d}; i++)
            to[i] = in[i] * scale${times};
% elseif out == "bf16" then
        uint16_t *restrict to = y + (size_t)row * ${d};
        for (int i = 0; i < ${d}; i++)
            to[i] = burin_bf16_of_f32(in[i] * scale${times});
% else
% local stride = out == "q8x2" and "2 * burin_q8_stride" or "burin_q8_stride"
        uint8_t *restrict to = y + (size_t)row * ${stride}(${d});
        float z[(${d} + 31) / 32 * 32]; /* groups of 32 may be read whole */
        for (int i = 0; i < ${d}; i++)
            z[i] = in[i] * scale${times};
        ${q8_row}(to, z, ${d});
% if out == "q8x2" then
        float rest[(${d} + 31) / 32 * 32];
        burin_q8_rest(rest, to, z, ${d});
        ${q8_row}(to + burin_q8_stride(${d}), rest, ${d});
% end
% end
    }
}
