% -- In: name, d (columns of weight), y (its type), tile_bytes, weight (the functions that read it).
/* y = weight[token_ids]: rows gathered from the packed table.   gen/ops/embedding.lua
 * <<<(rows, ${d} / 256), 256>>> */
extern "C" __global__ __launch_bounds__(256) void ${name}(
        ${y} *__restrict__ y, /* (rows, ${d}) */
        const int *__restrict__ token_ids, /* (rows) */
        const u8 *__restrict__ weight, /* tiles of 32 rows */
        int n_rows)
{
    const int id = token_ids[blockIdx.x];
    const int column = (int)(blockIdx.y * 256 + threadIdx.x);
    const u8 *tile = weight + (size_t)(id / 32) * ${tile_bytes};
    const size_t to = (size_t)blockIdx.x * ${d} + column;

    if (column < ${d})
        store_float(y, to, ${weight}_at(tile, id % 32, column));
}
