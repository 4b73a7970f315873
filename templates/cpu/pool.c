% -- In: name, d (last dim of x), size (adjacent rows), scale (of their sum).
/* y = ${size} adjacent rows as one: their mean${scale ~= 1 / size and ", scaled" or ""}.   gen/ops/pool.lua */
static void ${name}(
        const struct burin_team *t,
        float *restrict y, /* (n_rows, ${d}) */
        const float *restrict x, /* (${size} * n_rows, ${d}) */
        int n_rows)
{
    const struct burin_share rows = burin_share(t, n_rows);

    for (int row = rows.begin; row < rows.end; row++) {
        const float *restrict in = x + (size_t)row * ${size} * ${d};
        float *restrict to = y + (size_t)row * ${d};

        memcpy(to, in, ${d} * sizeof *to);
        for (int i = ${d}; i < ${size} * ${d}; i += ${d})
            for (int col = 0; col < ${d}; col++)
                to[col] += in[i + col];
        for (int col = 0; col < ${d}; col++)
            to[col] *= ${f32(scale)};
    }
}
