% -- In: name, k (columns), x (format of the rows made), x_stride (elements), from (type of what they
% -- are made from), clips (by bounds; else pixels: scale, shift), cpu.
% local floats = x.name == "f32"
% local q8_row = cpu == "avx512" and "burin_q8_row_x32" or "burin_q8_row"
/* ${clips and "Rows within bounds" or "Bytes as numbers: scaled and shifted"}, as ${x.name}. */
static void ${name}(
        ${x.c_type} *restrict to,
        const ${from} *restrict x, /* (n_rows, ${k}) */
% if clips then
        float low,
        float high,
% end
        int n_rows)
{
    for (int row = 0; row < n_rows; row++, x += ${k}, to += ${x_stride}) {
% if floats then
        float *restrict z = to;
% elseif x.name == "bf16" then
        float z[${k}];
% else
        float z[(${k} + 31) / 32 * 32]; /* groups of 32 may be read whole */
% end

        for (int i = 0; i < ${k}; i++)
% if clips then
            z[i] = burin_clamp(x[i], low, high);
% else
            z[i] = (float)x[i] * ${f32(scale)} + ${f32(shift)};
% end
% if x.name == "bf16" then
        for (int i = 0; i < ${k}; i++)
            to[i] = burin_bf16_of_f32(z[i]);
% elseif not floats then
        ${q8_row}(to, z, ${k});
% end
    }
}
