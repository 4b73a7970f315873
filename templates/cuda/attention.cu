% -- In: name, part, attend (functions for a part and for a block of keys), d (of a head), d_q (all
% -- heads), n_heads, group (query heads for a KV head), heads (of a block), tiles (of 16 rows),
% -- tile_tokens (a power of two), y ("u16", "float"), split (true: a block has one part and leaves it
% -- for attention_merge.cu); window (0: all tokens, in pages). In pages: page_bytes, head_bytes. With a
% -- window: slot_bytes, ring_bytes (of one head), part_blocks, spans, outputs (true where queries are
% -- those of some rows of the step).
% local units, rows = (d + 63) // 64, 16 * tiles
% local seen = window == 0 and "0" or ("position < %d ? 0 : position - %d"):format(window - 1, window - 1)
/* y = softmax(scale * q . keys) values${window == 0 and ", causal by position" or (" over %d keys"):format(window)}${spans and " and the picture's" or ""}; ${group} query heads share a
 * KV head.   gen/ops/attention.lua
 * A block has a tile of up to ${tile_tokens} tokens of one sequence by ${heads} heads of a KV head. Keys are
 * cut into parts at positions that follow from the query's own; a part is reduced by itself and
 * then merged into those before it${split and ", by another kernel: blockIdx.z is the part" or ""}. */
extern "C" __global__ __launch_bounds__(128, 1) void ${name}(
        ${y} *__restrict__ y, /* (n_tokens, ${d_q}) */
        const u16 *__restrict__ q, /* (n_tokens, ${d_q}), rows q_stride apart */
        int q_stride,
% if window == 0 then
        const u8 *__restrict__ pages, /* this layer's part of page 0 */
        const int *__restrict__ positions,
        const int *__restrict__ sequence_begin, /* (n_sequences + 1) */
        const int *__restrict__ page_table, /* (n_sequences, max_pages) */
        int max_pages,
% else
        const u8 *__restrict__ ring, /* this layer's part of slot 0, as before this step */
        const int *__restrict__ state_of, /* (n_sequences): slots */
        const u16 *__restrict__ k, /* of this step */
        int k_stride,
        const u16 *__restrict__ v,
        int v_stride,
        const int *__restrict__ positions,
        const int *__restrict__ sequence_begin, /* (n_sequences + 1) */
% if outputs then
        const int *__restrict__ step_positions,
        const int *__restrict__ step_begin, /* (n_sequences + 1): rows of k and v */
% end
% if spans then
        const int *__restrict__ spans, /* one past the last position that a row sees */
% end
% end
        int n_sequences,
        int n_tokens,
% if split then
        float *__restrict__ scratch) /* (16, 16, ${n_heads}, ${d}) by row and part, then max and sum */
% else
        float *__restrict__ scratch) /* not this kernel's */
% end
{
    enum { D = ${d}, N_HEADS = ${n_heads}, GROUP = ${group}, HEADS = ${heads} };
    enum { TOKENS = ${tile_tokens}, TILES = ${tiles}, ROWS = ${rows}, UNITS = ${units} };
% if window == 0 then
    enum { PAGE_BYTES = ${page_bytes}, HEAD_BYTES = ${head_bytes} };
% else
    enum { SLOT_BYTES = ${slot_bytes}, RING_BYTES = ${ring_bytes} }; /* of a sequence, of a head */
% end
    __shared__ struct ${part}_shared s;
    struct ${part} p;
    const int slot = (int)(gridDim.x - 1 - blockIdx.x); /* long ones first */
    const struct attention_tile tile =
            attention_tile_at(slot, TOKENS, positions, sequence_begin, n_sequences);
    const int n_rows = tile.n_tokens * HEADS;
    const int head = (int)blockIdx.y * HEADS, kv_head = head / GROUP;

    if (tile.n_tokens == 0)
        return;
    if (tile.position < 0) {
% if not split then
        for (int i = threadIdx.x; i < n_rows * D; i += 128) {
            const size_t row = (size_t)(tile.row + i / (HEADS * D));
            store_float(y, row * ${d_q} + head * D + i % (HEADS * D), 0.0f);
        }
% end
        return;
    }

    /* Rows behind the last one see what it sees. */
    for (int row = threadIdx.x; row < ROWS; row += 128) {
        const int token = (row < n_rows ? row : n_rows - 1) / HEADS;
        const int position = tile.position + token;
        s.from[row] = ${seen};
        s.to[row] = ${spans and "spans[tile.row + token]" or "position + 1"};
    }
    q += (size_t)tile.row * (size_t)q_stride + head * D;
    ${part}_queries(&s, q, q_stride, n_rows);
    __syncthreads();
    const int from = s.from[0], to = s.to[n_rows - 1]; /* what any of them sees, and ... */
    const int all_from = s.from[n_rows - 1], all_to = s.to[0]; /* ... all of them */
% if window == 0 then
    const int *table = page_table + (size_t)tile.sequence * (size_t)max_pages;
    const int part_blocks = attention_part_blocks(tile.position);
    pages += (size_t)kv_head * HEAD_BYTES;
% else
    const int begin = ${outputs and "step_begin" or "sequence_begin"}[tile.sequence];
    const int start = ${outputs and "step_positions" or "positions"}[begin];
    const int part_blocks = ${part_blocks};
    ring += (size_t)state_of[tile.sequence] * SLOT_BYTES + (size_t)kv_head * RING_BYTES;
    k += (size_t)begin * (size_t)k_stride + kv_head * D;
    v += (size_t)begin * (size_t)v_stride + kv_head * D;
    const struct ${attend}_source source = {
        (const u16 *)ring, start, k, v, k_stride, v_stride, from, to
    };
% end
    const int first_block = from / 64, n_blocks = (to - 1) / 64 + 1;
    const int n_parts = (n_blocks - 1) / part_blocks + 1;
% if split then
    const int first_part = first_block / part_blocks + (int)blockIdx.z;
    const int end_part = first_part + 1;

    if (first_part >= n_parts)
        return;
% else
    const int first_part = first_block / part_blocks, end_part = n_parts;
    float acc[TILES][UNITS][8]; /* of the parts so far, beside ... */
    __shared__ float max[ROWS], sum[ROWS], of_total[ROWS], of_part[ROWS];

    for (int t = 0; t < TILES; t++)
        for (int i = 0; i < UNITS * 8; i++)
            acc[t][i / 8][i % 8] = 0.0f;
    if (threadIdx.x < ROWS) {
        max[threadIdx.x] = attention_nothing();
        sum[threadIdx.x] = 0.0f;
    }
% end
    for (int part = first_part; part < end_part; part++) {
        const int in_part = part * part_blocks, behind = in_part + part_blocks;
        const int end_block = behind < n_blocks ? behind : n_blocks;

        ${part}_clear(&p);
        for (int block = in_part < first_block ? first_block : in_part; block < end_block;
             block++) {
            const int all_seen = block * 64 >= all_from && block * 64 + 64 <= all_to;
% if window == 0 then
            const u8 *page = pages + (size_t)table[block] * PAGE_BYTES;
            const u32 *keys = (const u32 *)page;
            const u32 *values = (const u32 *)(page + HEAD_BYTES / 2);
            ${attend}(&p, &s, keys, values, n_rows, block * 64, to, all_seen);
% else
            ${attend}(&p, &s, &source, n_rows, block * 64, all_seen);
% end
        }
        ${part}_reduce(&p, &s);
% if not split then
        if (threadIdx.x < ROWS) {
            const int row = threadIdx.x;
            attention_weigh_part(&max[row], s.max[row], &of_total[row], &of_part[row]);
            sum[row] = fmaf(sum[row], of_total[row], s.sum[row] * of_part[row]);
        }
        __syncthreads();
#pragma unroll
        for (int t = 0; t < TILES; t++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int row = attention_row(t, half);
                const float a = of_total[row], b = of_part[row];
                for (int i = 0; i < UNITS * 4; i++) {
                    const int u = i / 4, at = attention_place(half, i % 4);
                    acc[t][u][at] = fmaf(acc[t][u][at], a, p.acc[t][u][at] * b);
                }
            }
% end
    }

    /* Four columns of each 64 are the thread's. */
    const int column = threadIdx.x / 32 * 16 + threadIdx.x % 4 * 4;
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int row = attention_row(t, half);
            if (row >= n_rows)
                continue;
            const size_t token = (size_t)(tile.row + row / HEADS);
% if split then
            const size_t at = (token * 16 + first_part % 16) * N_HEADS + head + row % HEADS;
            float *into = scratch + at * D;
            float *behind = scratch + (size_t)256 * N_HEADS * D + at * 2;

            if (column == 0) {
                behind[0] = s.max[row];
                behind[1] = s.sum[row];
            }
#pragma unroll
            for (int u = 0; u < UNITS; u++)
                for (int i = 0; i < 4 && u * 64 + column < D; i++)
                    into[u * 64 + column + i] = p.acc[t][u][attention_place(half, i)];
% else
            const size_t at = token * ${d_q} + (head + row % HEADS) * D;
            const float inverse = 1.0f / sum[row];

#pragma unroll
            for (int u = 0; u < UNITS; u++)
                for (int i = 0; i < 4 && u * 64 + column < D; i++) {
                    const float x = acc[t][u][attention_place(half, i)];
                    store_float(y, at + u * 64 + column + i, x * inverse);
                }
% end
        }
}
