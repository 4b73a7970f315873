% -- In: name, k (columns, as C spells it), find (the block's part), product (a warp's segment:
% -- product_few.cu), segments, matrices (1, or 2 whose tiles lie in turn), tile_bytes, y, from (types),
% -- op (whose file), text (what it computes), slots (choices that share a row of x), gated (of gate and
% -- up, or false).
% local of_x = slots == 1 and "choices" or "choices / " .. slots
/* y = ${text} of each choice's expert, where few chose one.
 * gen/ops/${op}.lua   <<<(outputs / 32, parts), ${segments * 32}>>>
 * A block has a tile of 32 outputs of an expert and up to 8 of its choices; each of its warps a
 * segment of the columns. There are blocks for as many parts as any begin could ask for. */
extern "C" __global__ __launch_bounds__(${segments * 32}, 1) void ${name}(
        ${y} *__restrict__ y, /* (choices, n_out) */
        const ${from} *__restrict__ x, /* (${of_x}, ${k}) */
        const u8 *__restrict__ w, /* of each expert ${matrices == 2 and "gate's and up's tiles in turn" or "tiles of 32 rows"} */
        const int *__restrict__ choices, /* by expert */
        const int *__restrict__ begin, /* of each expert's */
        int n_out,
        int n_tokens)
{
    enum { SEGMENTS = ${segments}, TILE = ${matrices * tile_bytes} /* bytes */ };
    __shared__ float part[SEGMENTS][${matrices}][8][36];
    const int segment = (int)threadIdx.x / 32;
    const int row = (int)threadIdx.x % 32 / 4;
    const int n_tiles = (n_out + 31) / 32;
    int first, n_rows;
    const int expert = ${find}(begin, (int)blockIdx.y, &first, &n_rows);

    (void)n_tokens;
    if (expert < 0)
        return;
% if slots == 1 then
    const size_t row_of_x = row < n_rows ? choices[first + row] : 0;
% else
    const size_t row_of_x = row < n_rows ? choices[first + row] / ${slots} : 0;
% end
    const ${from} *in = row < n_rows ? x + row_of_x * ${k} : nullptr;
    const u8 *tile = w + ((size_t)expert * n_tiles + blockIdx.x) * TILE;

    ${product}(part[segment], tile, in, segment);
    __syncthreads();
    for (int i = (int)threadIdx.x; i < 8 * 32; i += SEGMENTS * 32) {
        const int out = (int)blockIdx.x * 32 + i % 32;
        float sum[${matrices}] = {};

        if (i / 32 >= n_rows || out >= n_out)
            continue;
#pragma unroll
        for (int m = 0; m < ${matrices}; m++)
            for (int s = 0; s < SEGMENTS; s++)
                sum[m] += part[s][m][i / 32][i % 32];
        const size_t at = (size_t)choices[first + i / 32] * n_out + out;
% if gated then
        store_float(y, at, ${gated}(sum[0], sum[1]));
% else
        store_float(y, at, sum[0]);
% end
    }
}
