% -- In: name, block (the function for one block), store (that which writes a tile's results), d
% -- (of a head), group (query heads for a KV head), n_kv_heads, d_q (all heads), scale (of scores,
% -- in units of log 2), tile_rows (queries), slot (floats of a partial), n_slots, page_bytes,
% -- head_bytes (one head's keys and values in a page), out ("f32", "bf16", "q8"), query ("float",
% -- "uint16_t" for bf16: as the block function reads it).
% local c_type = { f32 = "float", bf16 = "uint16_t", q8 = "uint8_t" }
/* y = softmax(scale * q . keys) values, causal by position; ${group} query heads share a
 * KV head. How the work is cut and what is merged: runtime/cpu/attention.h. */
static void ${name}(
        const struct burin_team *t,
        ${c_type[out]} *restrict y, /* (n_tokens, ${d_q}) as ${out} */
        const float *restrict q, /* (n_tokens, ${d_q}), rows q_stride apart */
        int q_stride,
        const uint8_t *restrict pages, /* this layer's part of page 0 */
        const int32_t *restrict positions,
        const int32_t *restrict sequence_of,
        const int32_t *restrict sequence_begin,
        const int32_t *restrict page_table, /* (sequences, max_pages) */
        int max_pages,
        int n_tokens,
        uint8_t *restrict scratch, /* the thread's; */
        size_t scratch_stride) /* and from one thread's to the next one's */
{
    enum { GROUP = ${group}, D = ${d}, SLOT = ${slot}, HEAD_BYTES = ${head_bytes} };
    _Static_assert(BURIN_N_SLOTS == ${n_slots}, "scratch holds so many: gen/ops/attention.lua");
    const struct burin_attention a = {
        .positions = positions,
        .sequence_of = sequence_of,
        .sequence_begin = sequence_begin,
        .n_tokens = n_tokens,
        .n_kv_heads = ${n_kv_heads},
        .group = GROUP,
        .tile_rows = ${tile_rows},
    };
    float *after_slots = (float *)(void *)scratch + BURIN_N_SLOTS * SLOT;
    ${query} *queries = (${query} *)(void *)after_slots;
    struct burin_walk walk = burin_walk_begin(t, &a);
    struct burin_piece piece, open = { .end = 0 }; /* open: its last parts are others' */
    struct burin_partial total = { 0 };

    while (burin_walk_next(&walk, &piece)) {
        const struct burin_tile *tile = &piece.tile;
        const int32_t *table = page_table + (size_t)tile->sequence * (size_t)max_pages;
        const int n_rows = tile->n_rows * GROUP;

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
        for (int part = piece.first; part < piece.end; part++) {
            const int slot = part == 0          ? BURIN_SLOT_TOTAL
                             : piece.first == 0 ? BURIN_SLOT_WORK
                                                : BURIN_SLOT_PARTS + part - piece.first;
            const struct burin_partial p =
                    burin_partial_at(scratch, slot * SLOT, n_rows, D);
            const int end = burin_part_begin(tile, part + 1);

            burin_partial_clear(p, n_rows, D);
            for (int block = burin_part_begin(tile, part); block < end; block++) {
                const uint8_t *page = pages + (size_t)table[block] * ${page_bytes};
                const uint8_t *keys = page + (size_t)piece.head * HEAD_BYTES;
                const uint8_t *values = keys + HEAD_BYTES / 2;
                const int visible = tile->position - block * BURIN_BLOCK + 1;
                ${block}(p, queries, keys, values, n_rows, visible);
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
