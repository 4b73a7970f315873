% -- In: name, d (of a head), eps, weight (whether there is one), offset (what it lacks: 0 or 1).
% local said = not weight and "" or offset == 0 and " * weight" or " * (" .. f32(offset) .. " + weight)"
% local times = said:gsub("weight", "weight[i]")
/* y = x / sqrt(mean(x^2) + eps)${said}, in each head by itself. y may be x.
 * gen/ops/head_norm.lua */
static void ${name}(
        const struct burin_team *t,
        float *y, /* (rows, n_heads * ${d}), rows y_stride apart */
        int y_stride,
        const float *x, /* likewise, x_stride apart */
        int x_stride,
% if weight then
        const float *restrict weight, /* (${d}) */
% end
        int n_heads,
        int n_rows)
{
    const struct burin_share rows = burin_share(t, n_rows);

    for (int row = rows.begin; row < rows.end; row++) {
        const float *in = x + (size_t)row * (size_t)x_stride;
        float *to = y + (size_t)row * (size_t)y_stride;

        for (int head = 0; head < n_heads; head++) {
            float part[32] = { 0 };

            for (int i = 0; i < ${d} / 32 * 32; i += 32)
                for (int lane = 0; lane < 32; lane++)
                    part[lane] += in[i + lane] * in[i + lane];
            for (int i = ${d} / 32 * 32; i < ${d}; i++)
                part[i % 32] += in[i] * in[i];

            const float scale = 1.0f / sqrtf(burin_fold32(part) / ${d} + ${f32(eps)});
            for (int i = 0; i < ${d}; i++)
                to[i] = in[i] * scale${times};
            in += ${d};
            to += ${d};
        }
    }
}
