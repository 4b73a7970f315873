% -- In: name, k (columns, as C spells it), steps, segment (steps), matrices (1, or 2 whose tiles lie in
% -- turn), tile_bytes, weight (the functions that read a tile), words (that they load), rows (the
% -- function that reads rows), from (their type), clips (rows, by bounds), sums_weights (the sum of a
% -- row of weights too).
% local bounds = clips and "bounds, " or ""
/* A warp's segment of the products of 8 rows with the 32 rows of a tile: part[row][out].
 * gen/cuda_tiles.lua says which columns a lane has, and in which order they are added. */
DEVICE void ${name}(
        float (*part)[8][36], /* of ${matrices + (sums_weights and 1 or 0)}; 36: lanes meet different banks */
        const u8 *tile,
        const ${from} *row, /* row lane / 4, or NULL */
% if clips then
        float2 bounds,
% end
        int segment)
{
    enum {
        MATRICES = ${matrices},
        SEGMENT = ${segment}, /* steps of 32 columns */
        STEPS = ${steps},
        TILE = ${tile_bytes}, /* bytes */
    };
    const int lane = (int)threadIdx.x % 32;
    const int begin = segment * SEGMENT;
    const int end = begin + SEGMENT < STEPS ? begin + SEGMENT : STEPS;
    float sums[MATRICES][2][4] = {};
% if sums_weights then
    float weights[2][4] = {};
% end

#pragma unroll ${2 // matrices}
    for (int step = begin; step < end; step++) {
        const int column = step * 32 + lane % 4 * 4;
        u32 words[MATRICES][${words}], a[2][2][4], b[2][2];

#pragma unroll
        for (int m = 0; m < MATRICES; m++)
            ${weight}_load(words[m], tile + m * TILE, step, lane);
        for (int part = 0; part < 2; part++)
            ${rows}(b[part], row, ${bounds}column + part * 16);
#pragma unroll
        for (int m = 0; m < MATRICES; m++) {
            ${weight}_pairs(a, words[m]);
#pragma unroll
            for (int i = 0; i < 4; i++)
                mma_bf16(sums[m][i % 2], a[i % 2][i / 2], b[i / 2]);
        }
% if sums_weights then
        const u32 ones[2] = { 0x3f803f80u, 0x3f803f80u };
#pragma unroll
        for (int i = 0; i < 4; i++)
            mma_bf16(weights[i % 2], a[i % 2][i / 2], ones);
% end
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int x_row = lane % 4 * 2 + i % 2, out = lane / 4 * 4 + i / 2;
#pragma unroll
        for (int m = 0; m < MATRICES; m++)
            part[m][x_row][out] = sums[m][i / 4][i % 4];
% if sums_weights then
        part[MATRICES][x_row][out] = weights[i / 4][i % 4];
% end
    }
}
