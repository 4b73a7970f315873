% -- In: name, d (last dim of x), cap.
/* x = ${f32(cap)} * tanh(x / ${f32(cap)}): near 0 what it was, and never beyond.
 * gen/ops/softcap.lua */
static void ${name}(
        const struct burin_team *t,
        float *restrict x, /* (rows, ${d}) */
        int n_rows)
{
    const struct burin_share columns = burin_share(t, ${d});

    for (int row = 0; row < n_rows; row++) {
        float *restrict to = x + (size_t)row * ${d};
        for (int i = columns.begin; i < columns.end; i++)
            to[i] = ${f32(cap)} * burin_tanh(to[i] * ${f32(1 / cap)});
    }
}
