% -- In: name, d (of a head), inv_freq (radians a position for each of the d / 2 pairs).
% local half = d // 2
/* y = cosines and sines of positions * inv_freq, in f32 as the model's makers took them.
 * Once a step, for all layers.   gen/ops/rope_angles.lua */
static void ${name}(
        const struct burin_team *t,
        float *restrict y, /* (tokens, ${d}): ${half} cosines, ${half} sines */
        const int32_t *restrict positions, /* (tokens) */
        int n_rows)
{
    static const float inv_freq[${half}] = {
% for i = 1, half do
        ${f32(inv_freq[i])}, /* ${i - 1} */
% end
    };
    const struct burin_share rows = burin_share(t, n_rows);

    for (int row = rows.begin; row < rows.end; row++) {
        float *restrict to = y + (size_t)row * ${d};
        for (int i = 0; i < ${half}; i++) {
            const float angle = (float)positions[row] * inv_freq[i];
            to[i] = cosf(angle);
            to[i + ${half}] = sinf(angle);
        }
    }
}
