% -- In: name, n (columns), k (of them).
/* The columns of a row's ${k} largest, largest first; of equal ones the lower column first. NaN
 * is larger than nothing, and the first ${k} columns begin the list: there are always so many.
 * gen/ops/top_k.lua */
static void ${name}(
        const struct burin_team *t,
        int32_t *restrict y, /* (rows, ${k}) */
        const float *restrict logits, /* (rows, ${n}) */
        int n_rows)
{
    const struct burin_share rows = burin_share(t, n_rows);

    for (int row = rows.begin; row < rows.end; row++) {
        const float *restrict in = logits + (size_t)row * ${n};
        int32_t *restrict top = y + (size_t)row * ${k};

        for (int i = 0; i < ${n}; i++) {
            int at = burin_min(i, ${k}); /* behind those that are not smaller */
            for (; at > 0 && in[i] > in[top[at - 1]]; at--)
                if (at < ${k})
                    top[at] = top[at - 1];
            if (at < ${k})
                top[at] = i;
        }
    }
}
