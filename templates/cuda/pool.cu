% -- In: name, d (last dim of x), size (adjacent rows), scale (of their sum), y, x (their types).
/* y = ${size} adjacent rows as one: their mean${scale ~= 1 / size and ", scaled" or ""}.   gen/ops/pool.lua
 * <<<(rows, ${d} / 256), 256>>> */
extern "C" __global__ __launch_bounds__(256) void ${name}(
        ${y} *__restrict__ y, /* (rows, ${d}) */
        const ${x} *__restrict__ x, /* (${size} * rows, ${d}) */
        int n_rows)
{
    const size_t row = blockIdx.x;
    const int column = (int)(blockIdx.y * 256 + threadIdx.x);
    float sum = 0.0f;

    if (column >= ${d})
        return;
    for (int j = 0; j < ${size}; j++)
        sum += load_float(x, (row * ${size} + j) * ${d} + column);
    store_float(y, row * ${d} + column, sum * ${f32(scale)});
}
