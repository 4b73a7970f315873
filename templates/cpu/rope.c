% -- In: name, d (of a head).
/* The pairs (i, i + ${d} / 2) of each head are turned by the row's angles, in place.
 * gen/ops/rope.lua */
static void ${name}(
        const struct burin_team *t,
        float *restrict x, /* (tokens, n_heads * ${d}), rows x_stride apart */
        int x_stride,
        int n_heads,
        const float *restrict angles, /* (tokens, ${d}): cosines, then sines */
        int n_rows)
{
    enum { HALF = ${d} / 2 };
    const struct burin_share rows = burin_share(t, n_rows);

    for (int row = rows.begin; row < rows.end; row++) {
        const float *restrict cosines = angles + (size_t)row * ${d};
        const float *restrict sines = cosines + HALF;
        float *restrict head = x + (size_t)row * (size_t)x_stride;

        for (int h = 0; h < n_heads; h++, head += ${d})
            for (int i = 0; i < HALF; i++) {
                const float a = head[i], b = head[i + HALF];
                head[i] = a * cosines[i] - b * sines[i];
                head[i + HALF] = b * cosines[i] + a * sines[i];
            }
    }
}
