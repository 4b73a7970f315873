% -- In: name, d (last dim of x), y, x (their types).
/* y = x[index], row by row.   gen/ops/rows.lua   <<<(rows, ${d} / 256), 256>>> */
extern "C" __global__ __launch_bounds__(256) void ${name}(
        ${y} *__restrict__ y, /* (rows, ${d}) */
        const ${x} *__restrict__ x, /* (tokens, ${d}) */
        const int *__restrict__ index, /* (rows) */
        int n_rows)
{
    const size_t from = (size_t)index[blockIdx.x] * ${d};
    const int column = (int)(blockIdx.y * 256 + threadIdx.x);

    if (column < ${d})
        store_float(y, (size_t)blockIdx.x * ${d} + column, load_float(x, from + column));
}
