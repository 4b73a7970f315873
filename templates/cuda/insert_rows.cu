% -- In: name, d (last dim of x), x, table (their types).
/* Row i of x becomes table[index[i]]; it stays where index[i] is negative.
 * gen/ops/insert_rows.lua   <<<(rows, ${d} / 256), 256>>> */
extern "C" __global__ __launch_bounds__(256) void ${name}(
        ${x} *x, /* (rows, ${d}) */
        const ${table} *__restrict__ table, /* (n, ${d}) */
        const int *__restrict__ index, /* (rows) */
        int n_rows)
{
    const int at = index[blockIdx.x];
    const int column = (int)(blockIdx.y * 256 + threadIdx.x);

    if (at >= 0 && column < ${d})
        store_float(
                x, (size_t)blockIdx.x * ${d} + column,
                load_float(table, (size_t)at * ${d} + column));
}
