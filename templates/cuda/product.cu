% -- In: name, k (columns, as C spells it), steps, segment (steps, an even number), matrices (1, or 2
% -- whose tiles lie in turn), octets (of rows), threads, tile_bytes, weight (the functions that read a
% -- tile), words (that they load), rows (the function that reads rows), from (their type), clips (rows,
% -- by bounds), sums_weights (the sum of a row of weights too).
% local bounds = clips and "bounds, " or ""
/* The products of ${octets * 8} rows with the 32 rows of each warp's tile. Rows pass through shared memory,
 * 64 columns at a time, in the order in which lanes take them; a tile comes as it is taken, a
 * step ahead. gen/cuda_tiles.lua says which columns a lane has, and in which order they are
 * added. Sums of segments lie in shared memory, where they are seldom needed: registers are. */
DEVICE void ${name}(
        float4 (*total)[${threads}], /* [(matrix * ${octets} + octet) * 2 + half], of each thread */
% if sums_weights then
        float (*total_weights)[4], /* the same for all rows */
% end
        const u8 *tile,
% if clips then
        float2 bounds,
% end
        const ${from} *const *row) /* those that the thread moves, or NULL */
{
    enum {
        MATRICES = ${matrices},
        OCTETS = ${octets},
        MOVED = OCTETS * 32 / ${threads}, /* rows of which a thread moves its columns */
        SEGMENT = ${segment}, /* steps of 32 columns */
        STEPS = ${steps},
        TILE = ${tile_bytes}, /* bytes */
    };
    __shared__ uint4 stage[2][2][OCTETS * 32]; /* a step of an octet: of each lane */
    const int lane = (int)threadIdx.x % 32;
    u32 ahead[MOVED][2][4]; /* of two steps */
    u32 words[MATRICES][${words}];

    const auto fetch = [&](int step) {
#pragma unroll
        for (int i = 0; i < MOVED * 4; i++) {
            u32 *to = ahead[i / 4][i / 2 % 2] + i % 2 * 2;
            const int column = step * 32 + i % 4 * 16 + lane % 4 * 4;
            ${rows}(to, row[i / 4], ${bounds}column);
        }
    };

    for (int i = 0; i < MATRICES * OCTETS * 2; i++)
        total[i][threadIdx.x] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    fetch(0);
#pragma unroll
    for (int m = 0; m < MATRICES; m++)
        ${weight}_load(words[m], tile + m * TILE, 0, lane);
    for (int begin = 0; begin < STEPS; begin += SEGMENT) {
        const int end = begin + SEGMENT < STEPS ? begin + SEGMENT : STEPS;
        float sums[MATRICES][OCTETS][2][4] = {};
% if sums_weights then
        float weights[2][4] = {};
% end

        for (int two = begin; two < end; two += 2) {
            uint4(*staged)[OCTETS * 32] = stage[two / 2 % 2];
#pragma unroll
            for (int i = 0; i < MOVED * 2; i++) {
                const u32 *from = ahead[i / 2][i % 2];
                staged[i % 2][i / 2 * ${threads} + threadIdx.x] =
                        make_uint4(from[0], from[1], from[2], from[3]);
            }
            __syncthreads(); /* the other half is free: all have passed the barrier before */
            if (two + 2 < STEPS)
                fetch(two + 2);
            const int last = two + 2 < STEPS ? two + 2 : STEPS;
#pragma unroll 1 /* or the next step's weights are made before this one's are used up */
            for (int step = two; step < last; step++) {
#pragma unroll
                for (int m = 0; m < MATRICES; m++) {
                    u32 a[2][2][4];

                    ${weight}_pairs(a, words[m]);
                    if (step + 1 < STEPS)
                        ${weight}_load(words[m], tile + m * TILE, step + 1, lane);
#pragma unroll
                    for (int octet = 0; octet < OCTETS; octet++) {
                        u32 b[4];
                        load_words_4(b, &staged[step - two][octet * 32 + lane]);
#pragma unroll
                        for (int i = 0; i < 4; i++)
                            mma_bf16(sums[m][octet][i % 2], a[i % 2][i / 2], b + i / 2 * 2);
                    }
% if sums_weights then
                    const u32 ones[2] = { 0x3f803f80u, 0x3f803f80u };
#pragma unroll
                    for (int i = 0; i < 4; i++)
                        mma_bf16(weights[i % 2], a[i % 2][i / 2], ones);
% end
                }
            }
        }
#pragma unroll
        for (int i = 0; i < MATRICES * OCTETS * 2; i++) {
            const float *sum = sums[i / 2 / OCTETS][i / 2 % OCTETS][i % 2];
            const float4 old = total[i][threadIdx.x];
            total[i][threadIdx.x] = make_float4(
                    old.x + sum[0], old.y + sum[1], old.z + sum[2], old.w + sum[3]);
        }
% if sums_weights then
#pragma unroll
        for (int i = 0; i < 8; i++)
            total_weights[i / 4][i % 4] += weights[i / 4][i % 4];
% end
    }
}
