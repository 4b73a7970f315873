% -- In: name, d (last dim of x), k (chosen by a token).
/* y = the sum of a token's ${k} rows, each times its weight, in the order of the slots.
 * gen/ops/experts_sum.lua */
static void ${name}(
        const struct burin_team *t,
        float *restrict y, /* (n_tokens, ${d}) */
        const float *restrict x, /* (n_tokens * ${k}, ${d}) */
        const float *restrict weights, /* (n_tokens, ${k}) */
        int n_tokens)
{
    const struct burin_share rows = burin_share(t, n_tokens);

    for (int row = rows.begin; row < rows.end; row++) {
        const float *restrict slots = x + (size_t)row * ${k} * ${d};
        const float *restrict weight = weights + (size_t)row * ${k};
        float *restrict to = y + (size_t)row * ${d};

        for (int i = 0; i < ${d}; i++)
            to[i] = slots[i] * weight[0];
        for (int slot = 1; slot < ${k}; slot++)
            for (int i = 0; i < ${d}; i++)
                to[i] += slots[slot * ${d} + i] * weight[slot];
    }
}
