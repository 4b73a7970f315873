% -- In: name, k (columns, as C spells it), sums_of (the kernel of one tile), x (activation
% -- format, not f32), x_stride (elements), rows (a part), tile_bytes, chunk (tiles that lie
% -- in 256 KiB), sign ("=" or "+="), put (what takes the sums: "store" or "add").
% -- x.planes: rows of int8 that a row of x is the sum of.
/* y ${sign} x w', a tile of 32 outputs at a time.   gen/ops/linear.lua
 * A unit of work is one tile and up to ROWS rows. One row or a few: each thread reads its
 * tiles once, as one stream. */
static void ${name}(
        const struct burin_team *t,
        float *restrict y, /* (n_tokens, n_rows_out), rows y_stride apart */
        int y_stride,
        const ${x.c_type} *restrict x, /* (n_tokens, ${k}) as ${x.name} */
        const uint8_t *restrict w, /* (n_rows_out, ${k}), tiles of 32 rows */
        int n_rows_out,
        int n_tokens)
{
    enum {
        ROWS = ${rows}, /* that stay in the L2 cache from tile to tile */
        X_STRIDE = ${x_stride}, /* elements */
        TILE = ${tile_bytes}, /* bytes */
        CHUNK = ${chunk}, /* tiles in 256 KiB, adjacent ones for one thread */
    };
    const int n_tiles = (n_rows_out + 31) / 32;
    const int n_parts = (n_tokens + ROWS - 1) / ROWS;
    const struct burin_deal deal = burin_deal(t, n_tiles * n_parts, CHUNK);

    for (int at = deal.begin; at < deal.end; at += deal.step)
        for (int unit = at; unit < burin_min(at + deal.chunk, deal.end); unit++) {
            const int first_out = unit % n_tiles * 32;
            const int n_out = burin_min(32, n_rows_out - first_out);
            const int first_row = unit / n_tiles * ROWS;
            const int end_row = burin_min(first_row + ROWS, n_tokens);
            const uint8_t *tile = w + (size_t)first_out / 32 * TILE;

            for (int row = first_row, n = 0; row < end_row; row += n) {
                const ${x.c_type} *in = x + (size_t)row * X_STRIDE;
                float *out = y + (size_t)row * (size_t)y_stride + first_out;
                float sums[8][32];

% if x.planes == 2 then
                /* Each row is followed by what it has rounded away. */
                n = burin_rows_at_once(2 * (end_row - row)) / 2;
                ${sums_of}(sums, tile, in, 2 * n);
                for (int i = 0; i < n; i++) {
                    burin_add_f32(sums[2 * i], sums[2 * i + 1], 32);
                    burin_${put}_f32(out + i * (size_t)y_stride, sums[2 * i], n_out);
                }
% else
                n = burin_rows_at_once(end_row - row);
                ${sums_of}(sums, tile, in, n);
                for (int i = 0; i < n; i++)
                    burin_${put}_f32(out + i * (size_t)y_stride, sums[i], n_out);
% end
            }
        }
}
