% -- In: name, d (of a head), d_q (all heads), n_heads, y ("u16", "float"), window (0: all tokens),
% -- part_blocks, spans (with a window).
% local seen = window == 0 and "0" or ("position < %d ? 0 : position - %d"):format(window - 1, window - 1)
/* y = what attention left in parts, merged one after the other; there are at most 16 rows.
 * A block has a row and a head. */
extern "C" __global__ __launch_bounds__(128) void ${name}(
        ${y} *__restrict__ y, /* (n_tokens, ${d_q}) */
        const float *__restrict__ scratch, /* (16, 16, ${n_heads}, ${d}), then max and sum */
        const int *__restrict__ positions,
% if spans then
        const int *__restrict__ spans, /* one past the last position that a row sees */
% end
        int n_tokens)
{
    enum { D = ${d}, N_HEADS = ${n_heads} };
    const int row = (int)blockIdx.x, head = (int)blockIdx.y;

    if (row >= n_tokens)
        return;
    const int position = positions[row];
    y += (size_t)row * ${d_q} + head * D;
    if (position < 0) {
        for (int i = threadIdx.x; i < D; i += 128)
            store_float(y, i, 0.0f);
        return;
    }
    const int from = ${seen};
    const int to = ${spans and "spans[row]" or "position + 1"};
    const int part_tokens = 64 * ${window == 0 and "attention_part_blocks(position)" or part_blocks};

    for (int i = threadIdx.x; i < D; i += 128) {
        float max = attention_nothing(), sum = 0.0f, acc = 0.0f;

        for (int part = from / part_tokens; part <= (to - 1) / part_tokens; part++) {
            const size_t at = ((size_t)row * 16 + part % 16) * N_HEADS + head;
            const float *behind = scratch + (size_t)256 * N_HEADS * D + at * 2;
            float a, b;

            attention_weigh_part(&max, behind[0], &a, &b);
            sum = fmaf(sum, a, behind[1] * b);
            acc = fmaf(acc, a, scratch[at * D + i] * b);
        }
        const float inverse = 1.0f / sum;
        store_float(y, i, acc * inverse);
    }
}
