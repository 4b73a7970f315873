% -- In: name, d (last dim of x), per_thread (numbers), threads, eps, y, x (their types).
/* y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias, row by row.   gen/ops/layer_norm.lua
 * A block has a row, and keeps it in registers: the variance is that of what is left when the
 * mean has been taken off, for a difference of two large sums would lose it.
 * <<<rows, ${threads}>>> */
extern "C" __global__ __launch_bounds__(${threads}) void ${name}(
        ${y} *__restrict__ y, /* (rows, ${d}) */
        const ${x} *__restrict__ x,
        const float *__restrict__ weight, /* (${d}) */
        const float *__restrict__ bias, /* (${d}) */
        int n_rows)
{
    enum { N = ${per_thread} }; /* numbers of a thread; constant, so `kept` uses no stack */
    const size_t row = (size_t)blockIdx.x * ${d};
    float kept[N];
    float sum = 0.0f, sum_sq = 0.0f;

    for (int j = 0; j < N; j++) {
        const int i = j * ${threads} + (int)threadIdx.x;
        kept[j] = i < ${d} ? load_float(x, row + i) : 0.0f;
        sum += kept[j];
    }
    const float mean = block_sum<${threads}>(sum) / ${d};
    for (int j = 0; j < N; j++) {
        const int i = j * ${threads} + (int)threadIdx.x;
        kept[j] = i < ${d} ? kept[j] - mean : 0.0f;
        sum_sq += kept[j] * kept[j];
    }
    const float scale = rsqrtf(block_sum<${threads}>(sum_sq) / ${d} + ${f32(eps)});
    for (int j = 0; j < N; j++) {
        const int i = j * ${threads} + (int)threadIdx.x;
        if (i < ${d})
            store_float(y, row + i, kept[j] * scale * weight[i] + bias[i]);
    }
}
