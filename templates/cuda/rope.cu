% -- In: name, d (of a head), x (its type), inv_freq (radians a position, of the pairs that turn:
% -- the first of d / 2), at_once (heads of a block), threads.
% local n = #inv_freq
/* The pairs (i, i + ${d} / 2) of each head are turned by position * inv_freq[i], in place.
 * A thread has one pair of every ${at_once}th head, or of one head where there are few rows: sines cost
 * more than memory where there are many.   gen/ops/rope.lua
 * <<<(rows, 1 or n_heads / ${at_once}), ${threads}>>> */
extern "C" __global__ __launch_bounds__(${threads}) void ${name}(
        ${x} *x, /* (rows, n_heads * ${d}), rows x_stride apart */
        int x_stride,
        int n_heads,
        const int *__restrict__ positions, /* (rows) */
        int n_rows)
{
    static const float inv_freq[${n}] = {
% for i = 1, n do
        ${f32(inv_freq[i])}, /* ${i - 1} */
% end
    };
    enum { HALF = ${d} / 2 };
    const int pair = (int)threadIdx.x % ${n};
    float sine, cosine;

    sin_cos((float)positions[blockIdx.x] * inv_freq[pair], &sine, &cosine);
    for (int head = (int)(blockIdx.y * ${at_once} + threadIdx.x / ${n}); head < n_heads;
         head += (int)gridDim.y * ${at_once}) {
        const size_t first = (size_t)blockIdx.x * x_stride + head * ${d} + pair;
        const float a = load_float(x, first), b = load_float(x, first + HALF);
        store_float(x, first, a * cosine - b * sine);
        store_float(x, first + HALF, b * cosine + a * sine);
    }
}
