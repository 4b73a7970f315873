% -- In: name, n (experts), k (chosen by a token).
/* Choices ordered by expert, within one by number; choice c is slot c % ${k} of token c / ${k}.
 * gen/ops/expert_rows.lua */
static void ${name}(
        const struct burin_team *t,
        int32_t *restrict y, /* (n_tokens * ${k}) */
        const int32_t *restrict experts, /* (n_tokens, ${k}) */
        const int32_t *restrict begin, /* (${n} + 1) */
        int n_tokens)
{
    int32_t next[${n}];

    if (t->thread != 0)
        return;
    memcpy(next, begin, sizeof next);
    for (int choice = 0; choice < n_tokens * ${k}; choice++)
        y[next[experts[choice]]++] = choice;
}
