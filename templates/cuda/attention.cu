% -- In: name, part, attend (functions for a part and for a block of keys), d (of a head), d_q (all
% -- heads), n_heads, group (query heads for a KV head), heads (of a block), tiles (of 16 rows),
% -- tile_tokens (a power of two), y ("u16", "float"), split (true: a block has one part and leaves it
% -- for attention_merge.cu); window (0: all tokens, in pages). In pages: page_bytes, head_bytes. With a
% -- window: slot_bytes, ring_bytes (of one head), part_blocks, spans, outputs (true where queries are
% -- those of some rows of the step).
% local units, rows = (d + 63) // 64, 16 * tiles
/* y = softmax(scale * q . keys) values${window == 0 and ", causal by position" or (" over %d keys"):format(window)}${spans and " and the picture's" or ""}; ${group} query heads share a
 * KV head.   gen/ops/attention.lua
 * A block has a tile of up to ${tile_tokens} tokens of one sequence and ${heads} heads of a KV head. Keys are cut
 * into parts at positions that follow from the query's own; a part is reduced by itself and
 * then merged into those before it${split and " by another kernel: blockIdx.z is the part" or ""}. */
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
        float *__restrict__ scratch) /* of parts: ${split and ("(n_tokens, 16, %d, %d), then (max, sum) of each"):format(n_heads, d) or "not this kernel's"} */
{
    __shared__ struct ${part}_shared s;
    struct ${part} p;
    const int slot = (int)(gridDim.x - 1 - blockIdx.x); /* long ones first */
    const struct attention_tile tile =
            attention_tile_at(slot, ${tile_tokens}, positions, sequence_begin, n_sequences);
    const int n_rows = tile.n_tokens * ${heads};
    const int head = (int)blockIdx.y * ${heads}, kv_head = head / ${group};
    const int g = threadIdx.x % 32 / 4, column = threadIdx.x / 32 * 16 + threadIdx.x % 4 * 4;

    if (tile.n_tokens == 0)
        return;
    if (tile.position < 0) {
% if not split then
        for (int i = threadIdx.x; i < n_rows * ${d}; i += 128) {
            const int row = tile.row + i / ${heads * d};
            store_float(y, (size_t)row * ${d_q} + head * ${d} + i % ${heads * d}, 0.0f);
        }
% end
        return;
    }

    /* Rows behind the last one see what it sees. */
    for (int row = threadIdx.x; row < ${rows}; row += 128) {
        const int token = (row < n_rows ? row : n_rows - 1) / ${heads};
        const int position = tile.position + token;
        s.from[row] = ${window == 0 and "0" or ("position < %d ? 0 : position - %d"):format(window - 1, window - 1)};
        s.to[row] = ${spans and "spans[tile.row + token]" or "position + 1"};
    }
    ${part}_queries(
            &s, q + (size_t)tile.row * (size_t)q_stride + head * ${d}, q_stride, n_rows);
    __syncthreads();
    const int from = s.from[0], to = s.to[n_rows - 1]; /* what any of them sees, and ... */
    const int all_from = s.from[n_rows - 1], all_to = s.to[0]; /* ... all of them */
% if window == 0 then
    const int *table = page_table + (size_t)tile.sequence * (size_t)max_pages;
    const int part_blocks = attention_part_blocks(tile.position);
% else
    const int begin = ${outputs and "step_begin" or "sequence_begin"}[tile.sequence];
    const struct ${attend}_source source = {
        (const u16 *)(ring + (size_t)state_of[tile.sequence] * ${slot_bytes} +
                      (size_t)kv_head * ${ring_bytes}),
        ${outputs and "step_positions" or "positions"}[begin],
        k + (size_t)begin * (size_t)k_stride + kv_head * ${d},
        v + (size_t)begin * (size_t)v_stride + kv_head * ${d},
        k_stride,
        v_stride,
        from,
        to,
    };
    const int part_blocks = ${part_blocks};
% end
    const int first_block = from / 64, n_blocks = (to - 1) / 64 + 1;
    const int n_parts = (n_blocks - 1) / part_blocks + 1;
    const int first_part = first_block / part_blocks${split and " + (int)blockIdx.z" or ""};
% if split then
    const int end_part = first_part + 1;

    if (first_part >= n_parts)
        return;
% else
    const int end_part = n_parts;
    float max[${tiles}][2], sum[${tiles}][2], acc[${tiles}][${units}][8]; /* of the parts so far */

#pragma unroll
    for (int t = 0; t < ${tiles}; t++)
        for (int half = 0; half < 2; half++) {
            max[t][half] = attention_nothing();
            sum[t][half] = 0.0f;
            for (int i = 0; i < ${units * 4}; i++)
                acc[t][i / 4][half * 4 + i % 4] = 0.0f;
        }
% end
    for (int part = first_part; part < end_part; part++) {
        const int in_part = part * part_blocks, behind = in_part + part_blocks;

        ${part}_clear(&p);
        for (int block = in_part < first_block ? first_block : in_part;
             block < n_blocks && block < behind; block++) {
            const int all_seen = block * 64 >= all_from && block * 64 + 64 <= all_to;
% if window == 0 then
            const u8 *keys = pages + (size_t)table[block] * ${page_bytes} +
                             (size_t)kv_head * ${head_bytes};
            ${attend}(
                    &p, &s, (const u32 *)keys, (const u32 *)(keys + ${head_bytes // 2}), n_rows,
                    block * 64, to, all_seen);
% else
            ${attend}(&p, &s, &source, n_rows, block * 64, all_seen);
% end
        }
        ${part}_sum(&p, &s);
% if not split then
#pragma unroll
        for (int t = 0; t < ${tiles}; t++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                float a, b;
                attention_weigh_part(&max[t][half], p.max[t][half], &a, &b);
                sum[t][half] = fmaf(sum[t][half], a, p.sum[t][half] * b);
#pragma unroll
                for (int u = 0; u < ${units}; u++)
                    for (int i = 0; i < 4; i++) {
                        const int at = half * 2 + i / 2 * 4 + i % 2;
                        acc[t][u][at] = fmaf(acc[t][u][at], a, p.acc[t][u][at] * b);
                    }
            }
% end
    }

#pragma unroll
    for (int t = 0; t < ${tiles}; t++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int row = t * 16 + half * 8 + g;
            if (row >= n_rows)
                continue;
% if split then
            const size_t at = ((size_t)(tile.row + row / ${heads}) * 16 + first_part % 16) * ${n_heads} +
                              head + row % ${heads};
            float *into = scratch + at * ${d};
            float *behind = scratch + (size_t)256 * ${n_heads} * ${d} + at * 2;

            if (threadIdx.x / 32 == 0 && threadIdx.x % 4 == 0) {
                behind[0] = p.max[t][half];
                behind[1] = p.sum[t][half];
            }
#pragma unroll
            for (int u = 0; u < ${units}; u++)
                if (u * 64 + column < ${d})
                    for (int i = 0; i < 4; i++)
                        into[u * 64 + column + i] = p.acc[t][u][half * 2 + i % 2 * 4 + i / 2];
% else
            const size_t at = (size_t)(tile.row + row / ${heads}) * ${d_q} +
                              (head + row % ${heads}) * ${d};
            const float inverse = 1.0f / sum[t][half];

#pragma unroll
            for (int u = 0; u < ${units}; u++)
                if (u * 64 + column < ${d})
                    for (int i = 0; i < 4; i++)
                        store_float(
                                y, at + u * 64 + column + i,
                                acc[t][u][half * 2 + i % 2 * 4 + i / 2] * inverse);
% end
        }
}
