% -- In: name, d (of a head), inv_freq (radians a position for each of the d / 4 pairs that an axis
% -- turns), split (x and y each have their half of the row).
% local quarter = d // 4
% local layout = split and "of x, then of y: cosines, sines" or "cosines of y and x, their sines"
/* y = cosines and sines of positions * inv_freq, in f32 as the model's makers took them.
 * Once for all layers.   gen/ops/rope_2d_angles.lua */
static void ${name}(
        const struct burin_team *t,
        float *restrict y, /* (rows, ${d}): ${layout} */
        const int32_t *restrict positions, /* (rows, 2): x, y */
        int n_rows)
{
    static const float inv_freq[${quarter}] = {
% for i = 1, quarter do
        ${f32(inv_freq[i])}, /* ${i - 1} */
% end
    };
    const struct burin_share rows = burin_share(t, n_rows);

    for (int row = rows.begin; row < rows.end; row++)
        for (int axis = 0; axis < 2; axis++) {
% if split then
            float *restrict to = y + (size_t)row * ${d} + axis * ${2 * quarter};
% else
            float *restrict to = y + (size_t)row * ${d} + (1 - axis) * ${quarter};
% end
            for (int i = 0; i < ${quarter}; i++) {
                const float angle = (float)positions[(size_t)row * 2 + axis] * inv_freq[i];
                to[i] = cosf(angle);
                to[i + ${split and quarter or 2 * quarter}] = sinf(angle);
            }
        }
}
