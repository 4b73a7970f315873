% -- In: as attention.c without page_bytes; window (keys that a row sees), spans (true where those of
% -- a picture see each other), part_blocks (blocks that are reduced by themselves), stage (the
% -- function that lays out a block), stage_at (floats of queries before it), slot_bytes (of a
% -- sequence), ring_bytes (of one head), kv ("bf16", "f32"), outputs (true where queries are those
% -- of some rows of the step, by themselves).
% local c_type = { f32 = "float", bf16 = "uint16_t", q8 = "uint8_t" }
/* y = softmax(scale * q . keys) values over ${window} keys${spans and " and the picture's" or ""}; ${group} query heads share a KV
 * head. How the work is cut and what is merged: runtime/cpu/attention.h. */
static void ${name}(
        const struct burin_team *t,
        ${c_type[out]} *restrict y, /* (n_tokens, ${d_q}) as ${out} */
        const float *restrict q, /* (n_tokens, ${d_q}), rows q_stride apart */
        int q_stride,
        const uint8_t *restrict ring, /* this layer's part of slot 0, as before this step */
        const int32_t *restrict state_of, /* (sequences): slots */
        const float *restrict k, /* of this step */
        int k_stride,
        const float *restrict v,
        int v_stride,
        const int32_t *restrict positions,
        const int32_t *restrict sequence_of,
        const int32_t *restrict sequence_begin,
% if spans then
        const int32_t *restrict spans, /* one past the last position that a row sees */
% end
        int n_tokens,
        uint8_t *restrict scratch, /* the thread's; */
% if outputs then
        size_t scratch_stride, /* and from one thread's to the next one's */
        const int32_t *restrict step_begin, /* (sequences + 1): rows of k and v */
        const int32_t *restrict step_positions)
% else
        size_t scratch_stride) /* and from one thread's to the next one's */
% end
{
    enum { GROUP = ${group}, D = ${d}, SLOT = ${slot}, HEAD_BYTES = ${head_bytes} };
    enum { SLOT_BYTES = ${slot_bytes}, RING_BYTES = ${ring_bytes} }; /* of a sequence, of a head */
    _Static_assert(BURIN_N_SLOTS == ${n_slots}, "scratch holds so many: gen/ops/attention.lua");
    const struct burin_attention a = {
        .positions = positions,
        .sequence_of = sequence_of,
        .sequence_begin = sequence_begin,
        .n_tokens = n_tokens,
        .n_kv_heads = ${n_kv_heads},
        .group = GROUP,
        .tile_rows = ${tile_rows},
        .window = ${window},
        .part_blocks = ${part_blocks},
% if spans then
        .spans = spans,
% end
    };
    float *after_slots = (float *)(void *)scratch + BURIN_N_SLOTS * SLOT;
    ${query} *queries = (${query} *)(void *)after_slots;
    uint8_t *keys = (uint8_t *)(void *)(after_slots + ${stage_at});
    struct burin_walk walk = burin_walk_begin(t, &a);
    struct burin_piece piece, open = { .end = 0 }; /* open: its last parts are others' */
    struct burin_partial total = { 0 };

    while (burin_walk_next(&walk, &piece)) {
        const struct burin_tile *tile = &piece.tile;
        const int n_rows = tile->n_rows * GROUP;
        const int begin = ${outputs and "step_begin" or "sequence_begin"}[tile->sequence];
        const int start = ${outputs and "step_positions" or "positions"}[begin];
        const uint8_t *kept = ring + (size_t)state_of[tile->sequence] * SLOT_BYTES +
                              (size_t)piece.head * RING_BYTES;
        const float *k_begin = k + (size_t)begin * (size_t)k_stride + piece.head * D;
        const float *v_begin = v + (size_t)begin * (size_t)v_stride + piece.head * D;

        for (int r = 0; r < n_rows; r++) {
            const size_t row = (size_t)(tile->row + r / GROUP);
            const int head = piece.head * GROUP + r % GROUP;
            const float *from = q + row * (size_t)q_stride + head * D;
            for (int i = 0; i < D; i++)
% if query == "uint16_t" then
                queries[r * D + i] = burin_bf16_of_f32(from[i] * ${f32(scale)});
% else
                queries[r * D + i] = from[i] * ${f32(scale)};
% end
        }

        total = burin_partial_at(scratch, BURIN_SLOT_TOTAL * SLOT, n_rows, D);
        if (piece.first == 0)
            burin_partial_clear(total, n_rows, D);
        for (int part = piece.first; part < piece.end; part++) {
            const int slot = piece.first == 0 ? BURIN_SLOT_WORK
                                              : BURIN_SLOT_PARTS + part - piece.first;
            const struct burin_partial p =
                    burin_partial_at(scratch, slot * SLOT, n_rows, D);
            const int end = burin_part_begin(tile, part + 1);

            burin_partial_clear(p, n_rows, D);
            for (int block = burin_part_begin(tile, part); block < end; block++) {
                int from[${tile_rows}], to[${tile_rows}];
                const struct burin_rows rows =
                        burin_rows_that_see(&a, tile, block, from, to);
                const int first = rows.begin * GROUP, n = rows.end * GROUP - first;
                if (n == 0)
                    continue;
                ${stage}(
                        keys, kept, k_begin, k_stride, v_begin, v_stride, start,
                        block * BURIN_BLOCK + from[rows.begin],
                        block * BURIN_BLOCK + to[rows.end - 1]);
                ${block}(
                        burin_partial_from(p, first, D), queries + (size_t)first * D, keys,
                        keys + HEAD_BYTES / 2, n, from + rows.begin, to + rows.begin);
            }
            if (slot == BURIN_SLOT_WORK)
                burin_partial_merge(total, p, n_rows, D);
        }
        if (piece.first == 0 && piece.end == tile->n_parts)
            ${store}(y, tile, piece.head, total);
        else if (piece.first == 0)
            open = piece;
    }

    burin_barrier(t);
    if (open.end == 0)
        return;
    const int n_rows = open.tile.n_rows * GROUP;
    int thread = t->thread, slot = 0;
    for (int part = open.end; part < open.tile.n_parts; part++) {
        const int before = thread;
        thread = burin_part_thread(&walk, &open, part, thread, t->n_threads);
        slot = thread == before ? slot + 1 : BURIN_SLOT_PARTS;
        uint8_t *theirs = scratch + (size_t)(thread - t->thread) * scratch_stride;
        const struct burin_partial p = burin_partial_at(theirs, slot * SLOT, n_rows, D);
        burin_partial_merge(total, p, n_rows, D);
    }
    ${store}(y, &open.tile, open.head, total);
}
