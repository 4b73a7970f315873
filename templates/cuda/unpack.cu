% -- In: name, k (columns, as C spells it), steps (of 32 columns), tile_bytes, weight (the functions that
% -- read a tile), words (that they load), format.
/* A matrix of ${format} weights as bf16, row by row: what cuBLASLt reads.   gen/cuda_tiles.lua
 * <<<(k / 128, outputs / 32), 128>>>   A warp has 32 columns of a tile. */
extern "C" __global__ __launch_bounds__(128) void ${name}(
        u16 *__restrict__ rows, /* (n_out, ${k}) */
        const u8 *__restrict__ w, /* the same in tiles of 32 rows */
        int n_out)
{
    enum { STEPS = ${steps}, TILE = ${tile_bytes} /* bytes */ };
    const int lane = (int)threadIdx.x % 32;
    const int step = (int)(blockIdx.x * 4 + threadIdx.x / 32);
    u32 words[${words}];
    u32 a[2][2][4];

    if (step >= STEPS)
        return;
    ${weight}_load(words, w + (size_t)blockIdx.y * TILE, step, lane);
    ${weight}_pairs(a, words);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int row = i / 2, part = i % 2;
        const int out = (int)blockIdx.y * 32 + lane / 4 * 4 + row;
        const int column = step * 32 + part * 16 + lane % 4 * 4;

        if (out < n_out && column < ${k})
            *(uint2 *)(rows + (size_t)out * ${k} + column) =
                    make_uint2(a[row / 2][part][row % 2], a[row / 2][part][2 + row % 2]);
    }
}
