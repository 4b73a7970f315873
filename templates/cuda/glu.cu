% -- In: name, d (columns of y: half of x's), y, x (their types).
/* y = a * sigmoid(b), a and b the two halves of a row.   gen/ops/glu.lua
 * <<<(rows, ${d} / 256), 256>>> */
extern "C" __global__ __launch_bounds__(256) void ${name}(
        ${y} *__restrict__ y, /* (rows, ${d}) */
        const ${x} *__restrict__ x, /* (rows, 2 * ${d}) */
        int n_rows)
{
    const size_t row = blockIdx.x;
    const int column = (int)(blockIdx.y * 256 + threadIdx.x);

    if (column >= ${d})
        return;
    const float a = load_float(x, row * 2 * ${d} + column);
    const float b = load_float(x, (row * 2 + 1) * ${d} + column);
    store_float(y, row * ${d} + column, a / (1.0f + expf(-b)));
}
