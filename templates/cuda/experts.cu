% -- In: name, k (columns, as C spells it), find (the block's part), product (of a block: product.cu),
% -- octets (of rows), threads, matrices (1, or 2 whose tiles lie in turn), tile_bytes, y, from (types),
% -- op (whose file), text (what it computes), slots (choices that share a row of x), gated (of gate and
% -- up, or false).
% local of_x = slots == 1 and "choices" or "choices / " .. slots
/* y = ${text} of each choice's expert: one grouped product.
 * gen/ops/${op}.lua   <<<(outputs / ${threads}, parts), ${threads}>>>
 * A block has ${threads // 32} tiles of an expert, one a warp, and up to ${octets * 8} of its choices. There are blocks
 * for as many parts as any begin could ask for. */
extern "C" __global__ __launch_bounds__(${threads}, 2) void ${name}(
        ${y} *__restrict__ y, /* (choices, n_out) */
        const ${from} *__restrict__ x, /* (${of_x}, ${k}) */
        const u8 *__restrict__ w, /* of each expert ${matrices == 2 and "gate's and up's tiles in turn" or "tiles of 32 rows"} */
        const int *__restrict__ choices, /* by expert */
        const int *__restrict__ begin, /* of each expert's */
        int n_out,
        int n_tokens)
{
    enum { OCTETS = ${octets}, MOVED = OCTETS * 32 / ${threads}, TILE = ${matrices * tile_bytes} /* bytes */ };
    __shared__ float4 total[${matrices} * OCTETS * 2][${threads}];
    const int lane = (int)threadIdx.x % 32;
    const int n_tiles = (n_out + 31) / 32;
    const int tile = (int)(blockIdx.x * ${threads // 32} + threadIdx.x / 32);
    const ${from} *in[MOVED];
    int first, n_rows;
    const int expert = ${find}(begin, (int)blockIdx.y, &first, &n_rows);

    (void)n_tokens;
    if (expert < 0)
        return;
#pragma unroll
    for (int i = 0; i < MOVED; i++) {
        const int row = (i * ${threads} + (int)threadIdx.x) / 4;
% if slots == 1 then
        const size_t row_of_x = row < n_rows ? choices[first + row] : 0;
        in[i] = row < n_rows ? x + row_of_x * ${k} : nullptr;
% else
        const size_t row_of_x = row < n_rows ? choices[first + row] / ${slots} : 0;
        in[i] = row < n_rows ? x + row_of_x * ${k} : nullptr;
% end
    }
    /* A warp without a tile of its own helps to move rows, and computes the last tile too. */
    const size_t before = (size_t)expert * n_tiles + min(tile, n_tiles - 1);
    ${product}(total, w + before * TILE, in);
    if (tile >= n_tiles)
        return;
#pragma unroll
    for (int i = 0; i < OCTETS * 8; i++) {
        const int row = i / 8 * 8 + lane % 4 * 2 + i % 2;
        const int out = tile * 32 + lane / 4 * 4 + i / 2 % 4;
        const float *sums = &total[i / 4][threadIdx.x].x;

        if (row >= n_rows || out >= n_out)
            continue;
        const size_t at = (size_t)choices[first + row] * n_out + out;
% if gated then
        const float *ups = &total[OCTETS * 2 + i / 4][threadIdx.x].x;
        store_float(y, at, ${gated}(sums[i % 4], ups[i % 4]));
% else
        store_float(y, at, sums[i % 4]);
% end
    }
}
