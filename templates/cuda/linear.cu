% -- In: name, k (columns, as C spells it), product (of a block: product.cu), octets (of rows), threads,
% -- matrices (1, or 2 whose tiles lie in turn), tile_bytes, y, from (types), op (whose file), text (what
% -- it computes), strided, adds, gated (of gate and up, or false), clips, pixels, bias, scale, shift.
/* y = ${text}.   gen/ops/${op}.lua   <<<(rows / ${octets * 8}, outputs / ${threads}), ${threads}>>>
 * A block has ${threads // 32} tiles of 32 outputs, one a warp, and ${octets * 8} rows. */
extern "C" __global__ __launch_bounds__(${threads}, 2) void ${name}(
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
    enum { OCTETS = ${octets}, MOVED = OCTETS * 32 / ${threads}, TILE = ${matrices * tile_bytes} /* bytes */ };
    const int lane = (int)threadIdx.x % 32;
    const int first_row = (int)blockIdx.x * OCTETS * 8;
    const int n_tiles = (n_out + 31) / 32;
    const int tile = (int)(blockIdx.y * ${threads // 32} + threadIdx.x / 32);
    __shared__ float4 total[${matrices} * OCTETS * 2][${threads}];
% if pixels then
    float weights[2][4] = {};
% end
    const ${from} *in[MOVED];

#pragma unroll
    for (int i = 0; i < MOVED; i++) {
        const int row = first_row + (i * ${threads} + (int)threadIdx.x) / 4;
        in[i] = row < n_rows ? x + (size_t)row * ${k} : nullptr;
    }
    /* A warp without a tile of its own helps to move rows, and computes the last tile too. */
    const u8 *own = w + (size_t)min(tile, n_tiles - 1) * TILE;
% if clips then
    const float2 bounds = make_float2(*in_min, *in_max);
    ${product}(total, own, bounds, in);
% elseif pixels then
    ${product}(total, weights, own, in);
% else
    ${product}(total, own, in);
% end
    if (tile >= n_tiles)
        return;
#pragma unroll
    for (int i = 0; i < OCTETS * 8; i++) {
        const int octet = i / 8, half = i / 4 % 2, j = i % 4;
        const float *sums = &total[i / 4][threadIdx.x].x;
        const int row = first_row + octet * 8 + lane % 4 * 2 + j % 2;
        const int out = tile * 32 + lane / 4 * 4 + half * 2 + j / 2;

        if (row >= n_rows || out >= n_out)
            continue;
        const float sum = sums[j];
        const size_t at = (size_t)row * ${strided and "y_stride" or "n_out"} + out;
% if adds then
        store_float(y, at, load_float(y, at) + sum);
% elseif gated then
        const float *ups = &total[OCTETS * 2 + i / 4][threadIdx.x].x;
        store_float(y, at, ${gated}(sum, ups[j]));
% elseif clips then
        store_float(y, at, fminf(fmaxf(sum, *out_min), *out_max));
% elseif pixels then
        const float shifted = fmaf(weights[half][j], ${f32(shift)}, ${bias and "bias[out]" or "0.0f"});
        store_float(y, at, fmaf(sum, ${f32(scale)}, shifted));
% else
        store_float(y, at, sum);
% end
    }
}
