% -- In: name, k (columns, as C spells it), sums_of (the kernel of one tile), x (activation
% -- format, not f32), x_stride (elements), rows (a part), tile_bytes, chunk (pairs of tiles
% -- that lie in 256 KiB), activation ("silu", "gelu_tanh"), times (gate's function times up),
% -- y (activation format).
/* y = ${activation}(x gate') * (x up'), 32 outputs at a time.   gen/ops/linear_glu.lua
 * Tile i of the gate and tile i of up lie side by side, so that a thread reads one stream
 * and has both factors at hand. */
static void ${name}(
        const struct burin_team *t,
        ${y.c_type} *restrict y, /* (n_tokens, n_rows_out) as ${y.name} */
        const ${x.c_type} *restrict x, /* (n_tokens, ${k}) as ${x.name} */
        const uint8_t *restrict w, /* (n_rows_out, ${k}) twice, tiles in turn */
        int n_rows_out,
        int n_tokens)
{
    enum {
        ROWS = ${rows}, /* that stay in the L2 cache from tile to tile */
        X_STRIDE = ${x_stride}, /* elements */
        TILE = ${tile_bytes}, /* bytes */
        CHUNK = ${chunk}, /* pairs of tiles in 256 KiB, adjacent ones for one thread */
    };
    const int n_tiles = (n_rows_out + 31) / 32;
    const int n_parts = (n_tokens + ROWS - 1) / ROWS;
    const struct burin_deal deal = burin_deal(t, n_tiles * n_parts, CHUNK);

    for (int at = deal.begin; at < deal.end; at += deal.step)
        for (int unit = at; unit < burin_min(at + deal.chunk, deal.end); unit++) {
            const int first_out = unit % n_tiles * 32;
% if y.name ~= "q8" then
            const int n_out = burin_min(32, n_rows_out - first_out);
% end
            const int first_row = unit / n_tiles * ROWS;
            const int end_row = burin_min(first_row + ROWS, n_tokens);
            const uint8_t *gate = w + (size_t)first_out / 32 * 2 * TILE;
            const uint8_t *up = gate + TILE;

            for (int row = first_row, n = 0; row < end_row; row += n) {
                const ${x.c_type} *in = x + (size_t)row * X_STRIDE;
                float gates[8][32], ups[8][32];

                n = burin_rows_at_once(end_row - row);
                ${sums_of}(gates, gate, in, n);
                ${sums_of}(ups, up, in, n);
                for (int i = 0; i < n; i++) {
                    const size_t out_row = (size_t)(row + i);
                    ${times}(gates[i], ups[i]);
% if y.name == "q8" then
                    uint8_t *out = y + out_row * burin_q8_stride(n_rows_out);
                    burin_store_q8(out, gates[i], first_out / 32, n_rows_out);
% else
                    ${y.c_type} *out = y + out_row * (size_t)n_rows_out + first_out;
                    burin_store_${y.name}(out, gates[i], n_out);
% end
                }
            }
        }
}
