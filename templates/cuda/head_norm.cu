% -- In: name, d (of a head), per_lane (numbers), eps, y, x (their types), weight (whether there is
% -- one), offset (what it lacks: 0 or 1).
% local said = not weight and "" or offset == 0 and " * weight" or " * (" .. f32(offset) .. " + weight)"
% local times = said:gsub("weight", "weight[i]")
/* In each head of a row, y = x / sqrt(mean(x^2) + eps)${said}; y may be x.
 * A warp has a head, and keeps it in registers from the sum to the product.
 * gen/ops/head_norm.lua   <<<rows * n_heads / 4, 128>>> */
extern "C" __global__ __launch_bounds__(128) void ${name}(
        ${y} *y, /* (rows, n_heads * ${d}), rows y_stride apart */
        int y_stride,
        const ${x} *x, /* likewise, x_stride apart */
        int x_stride,
% if weight then
        const float *__restrict__ weight, /* (${d}) */
% end
        int n_heads,
        int n_rows)
{
    enum { N = ${per_lane} }; /* numbers of a lane; constant, so `kept` uses no stack */
    const int head = (int)(blockIdx.x * 4 + threadIdx.x / 32);
    const int lane = (int)threadIdx.x % 32;
    const int row = head / n_heads;
    const size_t in = (size_t)row * x_stride + head % n_heads * ${d};
    const size_t out = (size_t)row * y_stride + head % n_heads * ${d};
    float kept[N];
    float sum_sq = 0.0f;

    if (row >= n_rows)
        return;
    for (int j = 0; j < N; j++) {
        const int i = j * 32 + lane;
        kept[j] = i < ${d} ? load_float(x, in + i) : 0.0f;
        sum_sq += kept[j] * kept[j];
    }
    const float scale = rsqrtf(warp_sum(sum_sq) / ${d} + ${f32(eps)});
    for (int j = 0; j < N; j++) {
        const int i = j * 32 + lane;
        if (i < ${d})
            store_float(y, out + i, kept[j] * scale${times});
    }
}
