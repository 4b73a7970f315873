% -- In: name, d (columns for all layers), width (of one layer), y, x (their types).
/* y = this layer's columns of x.   gen/ops/layer_columns.lua   <<<(rows, ${width} / 256), 256>>> */
extern "C" __global__ __launch_bounds__(256) void ${name}(
        ${y} *__restrict__ y, /* (rows, ${width}) */
        const ${x} *__restrict__ x, /* (rows, ${d}) */
        int layer,
        int n_rows)
{
    const size_t from = (size_t)blockIdx.x * ${d} + (size_t)layer * ${width};
    const int column = (int)(blockIdx.y * 256 + threadIdx.x);

    if (column < ${width})
        store_float(y, (size_t)blockIdx.x * ${width} + column, load_float(x, from + column));
}
