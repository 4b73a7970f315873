% -- In: name, k (columns, as C spells it), sums_of (the kernel of rows and a panel), widen (the
% -- kernel that makes a panel of a tile, or false), rows (a part), tile_bytes, strip (columns),
% -- strip_bytes (of a tile), chunk (tiles that lie in 256 KiB), sign ("=" or "+="), put (what
% -- takes the sums: "store" or "add").
/* y ${sign} x w' in f32, a tile of 32 outputs at a time.   gen/ops/linear.lua
 * A unit of work is one tile and up to ROWS rows, strip after strip of the tile's columns. */
static void ${name}(
        const struct burin_team *t,
        float *restrict y, /* (n_tokens, n_rows_out), rows y_stride apart */
        int y_stride,
        const float *restrict x, /* (n_tokens, ${k}) */
        const uint8_t *restrict w, /* (n_rows_out, ${k}), tiles of 32 rows */
        int n_rows_out,
        int n_tokens,
        uint8_t *restrict scratch)
{
    enum {
        ROWS = ${rows}, /* that stay in the L2 cache from tile to tile */
        STRIP = ${strip}, /* columns: 16 KiB of floats, half of the L1 cache */
        STRIP_BYTES = ${strip_bytes}, /* of a tile */
        TILE = ${tile_bytes}, /* bytes */
        CHUNK = ${chunk}, /* tiles in 256 KiB, adjacent ones for one thread */
    };
    const int n_tiles = (n_rows_out + 31) / 32;
    const int n_parts = (n_tokens + ROWS - 1) / ROWS;
    const struct burin_deal deal = burin_deal(t, n_tiles * n_parts, CHUNK);
    float(*sums)[32] = (float(*)[32])(void *)scratch; /* (ROWS, 32) */
% if widen then
    float *panel = sums[ROWS]; /* (STRIP, 32) */
% end

    for (int at = deal.begin; at < deal.end; at += deal.step)
        for (int unit = at; unit < burin_min(at + deal.chunk, deal.end); unit++) {
            const int first_out = unit % n_tiles * 32;
            const int n_out = burin_min(32, n_rows_out - first_out);
            const int first_row = unit / n_tiles * ROWS;
            const int n_rows = burin_min(ROWS, n_tokens - first_row);
            const uint8_t *tile = w + (size_t)first_out / 32 * TILE;
            float *out = y + (size_t)first_row * (size_t)y_stride + first_out;

            memset(sums, 0, (size_t)n_rows * sizeof *sums);
            for (int col = 0; col < ${k}; col += STRIP, tile += STRIP_BYTES) {
                const float *in = x + (size_t)first_row * ${k} + col;
                const int n_cols = burin_min(STRIP, ${k} - col);

% if widen then
                ${widen}(panel, tile, n_cols);
% else
                const float *panel = (const float *)(const void *)tile;
% end
                ${sums_of}(sums, panel, in, n_cols, n_rows);
            }
            for (int i = 0; i < n_rows; i++)
                burin_${put}_f32(out + i * (size_t)y_stride, sums[i], n_out);
        }
}
