% -- In: name, d (of a head), axes (1, or 2: heads are turned by the first's and the second's
% -- angles in turn).
% local row = axes == 1 and d or "2 * " .. d
/* The pairs (i, i + ${d} / 2) of each head are turned by the row's angles, in place.
 * ${axes == 1 and "gen/ops/rope.lua" or "Even heads by the column's, odd ones by the line's.   gen/ops/rope_2d.lua"} */
static void ${name}(
        const struct burin_team *t,
        float *restrict x, /* (tokens, n_heads * ${d}), rows x_stride apart */
        int x_stride,
        int n_heads,
        const float *restrict angles, /* (tokens, ${row}): ${axes == 1 and "cosines, then sines" or "of each axis: cosines, sines"} */
        int n_rows)
{
    enum { HALF = ${d} / 2 };
    const struct burin_share rows = burin_share(t, n_rows);

    for (int row = rows.begin; row < rows.end; row++) {
% if axes == 1 then
        const float *restrict cosines = angles + (size_t)row * ${d};
        const float *restrict sines = cosines + HALF;
% else
        const float *restrict of_row = angles + (size_t)row * ${row};
% end
        float *restrict head = x + (size_t)row * (size_t)x_stride;

% if axes == 1 then
        for (int h = 0; h < n_heads; h++, head += ${d})
% else
        for (int h = 0; h < n_heads; h++, head += ${d}) {
            const float *restrict cosines = of_row + h % 2 * ${d};
            const float *restrict sines = cosines + HALF;
% end
            for (int i = 0; i < HALF; i++) {
                const float a = head[i], b = head[i + HALF];
                head[i] = a * cosines[i] - b * sines[i];
                head[i + HALF] = b * cosines[i] + a * sines[i];
            }
% if axes == 2 then
        }
% end
    }
}
