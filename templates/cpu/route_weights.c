% -- In: name, n (experts), k (chosen), scaled (by an expert's own scale).
/* y = softmax of the chosen logits${scaled and ", times the experts' scales" or ""}, in the order of the slots.
 * gen/ops/route_weights.lua */
static void ${name}(
        const struct burin_team *t,
        float *restrict y, /* (rows, ${k}) */
        const float *restrict logits, /* (rows, ${n}) */
        const int32_t *restrict experts, /* (rows, ${k}) */
% if scaled then
        const float *restrict scale, /* (${n}) */
% end
        int n_rows)
{
    const struct burin_share rows = burin_share(t, n_rows);

    for (int row = rows.begin; row < rows.end; row++) {
        const float *restrict in = logits + (size_t)row * ${n};
        const int32_t *restrict chosen = experts + (size_t)row * ${k};
        float *restrict to = y + (size_t)row * ${k};
        float max = in[chosen[0]], sum = 0.0f;

        for (int i = 1; i < ${k}; i++)
            max = in[chosen[i]] > max ? in[chosen[i]] : max;
        for (int i = 0; i < ${k}; i++) {
            to[i] = burin_exp(in[chosen[i]] - max);
            sum += to[i];
        }
        for (int i = 0; i < ${k}; i++)
% if scaled then
            to[i] = to[i] / sum * scale[chosen[i]];
% else
            to[i] /= sum;
% end
    }
}
