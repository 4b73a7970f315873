% -- In: name, k (columns, as C spells it), product (a warp's segment: product_few.cu), segments,
% -- matrices (1, or 2 whose tiles lie in turn), parts (of a row's sums: 2 where weights are summed
% -- too), tile_bytes, y, from (types), op (whose file), text (what it computes), adds, gated (of gate
% -- and up, or false), clips, pixels, bias, scale, shift.
/* y = ${text}, for a few rows.   gen/ops/${op}.lua   <<<(rows / 8, outputs / 32), ${segments * 32}>>>
 * A block has a tile of 32 outputs and 8 rows; each of its warps a segment of the columns. */
extern "C" __global__ __launch_bounds__(${segments * 32}, 1) void ${name}(
        ${y} *y, /* (rows, n_out)${(adds or strided) and ", y_stride apart" or ""} */
% if strided then
        int y_stride,
% end
        const ${from} *__restrict__ x, /* (rows, ${k}) */
        const u8 *__restrict__ w, /* (n_out, ${k})${matrices == 2 and " twice, tiles in turn" or ", tiles of 32 rows"} */
% if bias then
        const float *__restrict__ bias, /* (n_out) */
% end
% if clips then
        const float *in_min,
        const float *in_max,
        const float *out_min,
        const float *out_max,
% end
        int n_out,
        int n_rows)
{
    enum { SEGMENTS = ${segments}, TILE = ${matrices * tile_bytes} /* bytes */ };
    __shared__ float part[SEGMENTS][${parts}][8][36];
    const int first_row = (int)blockIdx.x * 8;
    const int segment = (int)threadIdx.x / 32;
    const int row = first_row + (int)threadIdx.x % 32 / 4;
    const ${from} *in = row < n_rows ? x + (size_t)row * ${k} : nullptr;
    const u8 *tile = w + (size_t)blockIdx.y * TILE;

% if clips then
    const float2 bounds = make_float2(*in_min, *in_max);
    ${product}(part[segment], tile, in, bounds, segment);
% else
    ${product}(part[segment], tile, in, segment);
% end
    __syncthreads();
    for (int i = (int)threadIdx.x; i < 8 * 32; i += SEGMENTS * 32) {
        const int out_row = first_row + i / 32;
        const int out = (int)blockIdx.y * 32 + i % 32;
        float sum[${parts}] = {};

        if (out_row >= n_rows || out >= n_out)
            continue;
#pragma unroll
        for (int m = 0; m < ${parts}; m++)
            for (int s = 0; s < SEGMENTS; s++)
                sum[m] += part[s][m][i / 32][i % 32];
        const size_t at = (size_t)out_row * ${strided and "y_stride" or "n_out"} + out;
% if adds then
        store_float(y, at, load_float(y, at) + sum[0]);
% elseif gated then
        store_float(y, at, ${gated}(sum[0], sum[1]));
% elseif clips then
        store_float(y, at, fminf(fmaxf(sum[0], *out_min), *out_max));
% elseif pixels then
        const float shifted = fmaf(sum[1], ${f32(shift)}, ${bias and "bias[out]" or "0.0f"});
        store_float(y, at, fmaf(sum[0], ${f32(scale)}, shifted));
% else
        store_float(y, at, sum[0]);
% end
    }
}
