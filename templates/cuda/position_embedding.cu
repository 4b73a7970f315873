% -- In: name, d (last dim of x), x (its type), n (positions of an axis), axis_first (the table is
% -- (2, n, d), not (n, 2, d)), tile_bytes, weight (the functions that read it).
/* x += weight of the row's column + weight of its line, in place.
 * gen/ops/position_embedding.lua   <<<(rows, ${d} / 256), 256>>> */
extern "C" __global__ __launch_bounds__(256) void ${name}(
        ${x} *x, /* (rows, ${d}) */
        const u8 *__restrict__ weight, /* tiles of 32 rows */
        const int *__restrict__ positions, /* (rows, 2) */
        int n_rows)
{
    const int column = (int)(blockIdx.y * 256 + threadIdx.x);
    const size_t i = (size_t)blockIdx.x * ${d} + column;

    if (column >= ${d})
        return;
    float sum = load_float(x, i);
    for (int axis = 0; axis < 2; axis++) {
        const int position = positions[(size_t)blockIdx.x * 2 + axis];
        const int known = position < 0 ? 0 : position; /* a padded row has none */
% if axis_first then
        const int row = axis * ${n} + known;
% else
        const int row = known * 2 + axis;
% end
        const u8 *tile = weight + (size_t)(row / 32) * ${tile_bytes};
        sum += ${weight}_at(tile, row % 32, column);
    }
    store_float(x, i, sum);
}
