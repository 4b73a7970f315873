% -- In: name, d (last dim of x), per_thread (numbers), threads, eps, y, x (their types), weight
% -- (whether there is one), offset (what it lacks: 0 or 1).
% local said = not weight and "" or offset == 0 and " * weight" or " * (" .. f32(offset) .. " + weight)"
% local times = said:gsub("weight", "weight[i]")
/* y = x / sqrt(mean(x^2) + eps)${said}, row by row.   gen/ops/rms_norm.lua
 * A block has a row, and keeps it in registers from the sum to the product.
 * <<<rows, ${threads}>>> */
extern "C" __global__ __launch_bounds__(${threads}) void ${name}(
        ${y} *__restrict__ y, /* (rows, ${d}) */
        const ${x} *__restrict__ x,
% if weight then
        const float *__restrict__ weight, /* (${d}) */
% end
        int n_rows)
{
    enum { N = ${per_thread} }; /* numbers of a thread; constant, so `kept` uses no stack */
    const size_t row = (size_t)blockIdx.x * ${d};
    float kept[N];
    float sum_sq = 0.0f;

    for (int j = 0; j < N; j++) {
        const int i = j * ${threads} + (int)threadIdx.x;
        kept[j] = i < ${d} ? load_float(x, row + i) : 0.0f;
        sum_sq += kept[j] * kept[j];
    }
    const float scale = rsqrtf(block_sum<${threads}>(sum_sq) / ${d} + ${f32(eps)});
    for (int j = 0; j < N; j++) {
        const int i = j * ${threads} + (int)threadIdx.x;
        if (i < ${d})
            store_float(y, row + i, kept[j] * scale${times});
    }
}
