% -- In: name, d (of a head), x (its type), inv_freq (radians a position of the d / 4 pairs of an
% -- axis), split (an axis has a half of the head for itself), at_once (heads of a block), threads.
% local quarter = #inv_freq
% local apart = split and quarter or 2 * quarter
% local layout = split and "of the head's first half by the column, of its second by the line"
%   or "the head's first " .. quarter .. " by the line, the others by the column"
/* The pairs (i, i + ${apart}) are turned by position * inv_freq, in place:
 * ${layout}.
 * A thread has one pair of one head.   gen/ops/rope_2d.lua
 * <<<(rows, n_heads / ${at_once}), ${threads}>>> */
extern "C" __global__ __launch_bounds__(${threads}) void ${name}(
        ${x} *x, /* (rows, n_heads * ${d}), rows x_stride apart */
        int x_stride,
        int n_heads,
        const int *__restrict__ positions, /* (rows, 2): column, line */
        int n_rows)
{
    static const float inv_freq[${quarter}] = {
% for i = 1, quarter do
        ${f32(inv_freq[i])}, /* ${i - 1} */
% end
    };
    enum { QUARTER = ${d} / 4 };
    const int pair = (int)threadIdx.x % (2 * QUARTER);
    const int head = (int)(blockIdx.y * ${at_once} + threadIdx.x / (2 * QUARTER));
    float sine, cosine;

    if (head >= n_heads)
        return;
% if split then
    const int axis = pair / QUARTER;
    const int at = pair + axis * QUARTER, apart = QUARTER;
% else
    const int axis = 1 - pair / QUARTER;
    const int at = pair, apart = 2 * QUARTER;
% end
    const int position = positions[(size_t)blockIdx.x * 2 + axis];
    const size_t first = (size_t)blockIdx.x * x_stride + head * ${d} + at;
    const float a = load_float(x, first), b = load_float(x, first + apart);

    sin_cos((float)position * inv_freq[pair % QUARTER], &sine, &cosine);
    store_float(x, first, a * cosine - b * sine);
    store_float(x, first + apart, b * cosine + a * sine);
}
