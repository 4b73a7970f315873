% -- In: name, a, b (columns of x and of other), y, x, other (their types).
/* y = [x, other]: the columns of both, side by side.   gen/ops/concat.lua
 * <<<(rows, (${a} + ${b}) / 256), 256>>> */
extern "C" __global__ __launch_bounds__(256) void ${name}(
        ${y} *__restrict__ y, /* (rows, ${a} + ${b}) */
        const ${x} *__restrict__ x, /* (rows, ${a}) */
        const ${other} *__restrict__ other, /* (rows, ${b}) */
        int n_rows)
{
    const size_t row = blockIdx.x;
    const int column = (int)(blockIdx.y * 256 + threadIdx.x);
    const size_t to = row * (${a} + ${b}) + column;

    if (column < ${a})
        store_float(y, to, load_float(x, row * ${a} + column));
    else if (column < ${a} + ${b})
        store_float(y, to, load_float(other, row * ${b} + column - ${a}));
}
