% -- In: name, d (of a head), d_q (all heads), n_heads, scale (of scores, in units of log 2),
% -- tile_rows (queries that meet a block of keys together), block (the function for them and one
% -- block), stage (what lays out a block), store (what writes a tile), queries_at, keys_at (bytes, in
% -- scratch), head_bytes (of a block of keys and values), out ("f32", "bf16", "q8"), query ("float",
% -- "uint16_t" for bf16: as the block function reads it).
% local c_type = { f32 = "float", bf16 = "uint16_t", q8 = "uint8_t" }
/* y = softmax(scale * q . keys) values among the rows of one item.
 * gen/ops/packed_attention.lua
 * A unit of work is a head and up to TILE rows of an item. They meet the item's keys in blocks
 * of 64 from its first row on, so a row's bits don't know what else is packed. */
static void ${name}(
        const struct burin_team *t,
        ${c_type[out]} *restrict y, /* (n_rows, ${d_q}) as ${out} */
        const float *restrict q, /* (n_rows, ${d_q}), rows q_stride apart */
        int q_stride,
        const float *restrict k,
        int k_stride,
        const float *restrict v,
        int v_stride,
        const int32_t *restrict item_begin, /* n_rows behind the last one's */
        int n_rows,
        uint8_t *restrict scratch)
{
    enum { D = ${d}, TILE = ${tile_rows}, HEAD_BYTES = ${head_bytes} };
    ${query} *queries = (${query} *)(void *)(scratch + ${queries_at});
    uint8_t *keys = scratch + ${keys_at}, *values = keys + HEAD_BYTES / 2;
    int n_tiles = 0;

    for (int item = 0; item_begin[item] < n_rows; item++)
        n_tiles += (item_begin[item + 1] - item_begin[item] + TILE - 1) / TILE;

    /* Dealt out in turn: tiles of large items cost more, and lie side by side. */
    for (int unit = t->thread; unit < ${n_heads} * n_tiles; unit += t->n_threads) {
        const int head = unit / n_tiles;
        int item = 0, first = unit % n_tiles * TILE; /* within its item */
        int n_item = item_begin[1] - item_begin[0];
        while (first >= n_item) {
            first -= (n_item + TILE - 1) / TILE * TILE;
            item++;
            n_item = item_begin[item + 1] - item_begin[item];
        }
        const float *item_k = k + (size_t)item_begin[item] * (size_t)k_stride + head * D;
        const float *item_v = v + (size_t)item_begin[item] * (size_t)v_stride + head * D;
        const struct burin_tile tile = {
            .row = item_begin[item] + first,
            .n_rows = burin_min(TILE, n_item - first),
        };
        const struct burin_partial p = burin_partial_at(scratch, 0, tile.n_rows, D);

        for (int r = 0; r < tile.n_rows; r++) {
            const float *from = q + (size_t)(tile.row + r) * (size_t)q_stride + head * D;
            for (int i = 0; i < D; i++)
% if query == "uint16_t" then
                queries[r * D + i] = burin_bf16_of_f32(from[i] * ${f32(scale)});
% else
                queries[r * D + i] = from[i] * ${f32(scale)};
% end
        }
        burin_partial_clear(p, tile.n_rows, D);
        for (int key = 0; key < n_item; key += BURIN_BLOCK) {
            const int end = burin_min(key + BURIN_BLOCK, n_item);
            ${stage}(keys, NULL, item_k, k_stride, item_v, v_stride, 0, key, end);
            ${block}(p, queries, keys, values, tile.n_rows, end - key);
        }
        ${store}(y, &tile, head, p);
    }
}
