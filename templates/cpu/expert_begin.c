% -- In: name, n (experts), k (chosen by a token).
/* y[e]: how many choices fall on experts before e.   gen/ops/expert_begin.lua
 * Some thousand whole numbers at most: one thread counts them. */
static void ${name}(
        const struct burin_team *t,
        int32_t *restrict y, /* (${n} + 1) */
        const int32_t *restrict experts, /* (n_tokens, ${k}) */
        int n_tokens)
{
    if (t->thread != 0)
        return;
    memset(y, 0, (${n} + 1) * sizeof *y);
    for (int choice = 0; choice < n_tokens * ${k}; choice++)
        y[experts[choice] + 1]++;
    for (int e = 0; e < ${n}; e++)
        y[e + 1] += y[e];
}
