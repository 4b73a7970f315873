% -- In: name, k (columns, as C spells it), sums_of (the kernel of rows and a panel), widen (the
% -- kernel that makes a panel of a tile, or false), rows (a part), tile_bytes, strip (columns),
% -- strip_bytes (of a tile), chunk (pairs of tiles that lie in 256 KiB), activation ("silu",
% -- "gelu_tanh"), times (gate's function times up), y (activation format).
/* y = ${activation}(x gate') * (x up') in f32, 32 outputs at a time.   gen/ops/linear_glu.lua
 * A unit of work is a tile of each and up to ROWS rows, strip after strip of their columns. */
static void ${name}(
        const struct burin_team *t,
        ${y.c_type} *restrict y, /* (n_tokens, n_rows_out) as ${y.name} */
        const float *restrict x, /* (n_tokens, ${k}) */
        const uint8_t *restrict w, /* tiles of the gate and of up in turn */
        int n_rows_out,
        int n_tokens,
        uint8_t *restrict scratch)
{
    enum {
        ROWS = ${rows}, /* that stay in the L2 cache from tile to tile */
        STRIP = ${strip}, /* columns: 16 KiB of floats, half of the L1 cache */
        STRIP_BYTES = ${strip_bytes}, /* of a tile */
        TILE = ${tile_bytes}, /* bytes */
        CHUNK = ${chunk}, /* pairs of tiles in 256 KiB, adjacent ones for one thread */
    };
    const int n_tiles = (n_rows_out + 31) / 32;
    const int n_parts = (n_tokens + ROWS - 1) / ROWS;
    const struct burin_deal deal = burin_deal(t, n_tiles * n_parts, CHUNK);
    float(*gates)[32] = (float(*)[32])(void *)scratch; /* (ROWS, 32) */
    float(*ups)[32] = gates + ROWS; /* (ROWS, 32) */
% if widen then
    float *panel = ups[ROWS]; /* (STRIP, 32) */
% end

    for (int at = deal.begin; at < deal.end; at += deal.step)
        for (int unit = at; unit < burin_min(at + deal.chunk, deal.end); unit++) {
            const int first_out = unit % n_tiles * 32;
% if y.name ~= "q8" then
            const int n_out = burin_min(32, n_rows_out - first_out);
% end
            const int first_row = unit / n_tiles * ROWS;
            const int n_rows = burin_min(ROWS, n_tokens - first_row);
            const uint8_t *pair = w + (size_t)first_out / 32 * 2 * TILE;

            memset(gates, 0, (size_t)n_rows * sizeof *gates);
            memset(ups, 0, (size_t)n_rows * sizeof *ups);
            for (int up = 0; up < 2; up++) {
                const uint8_t *tile = pair + up * TILE;

                for (int col = 0; col < ${k}; col += STRIP, tile += STRIP_BYTES) {
                    const float *in = x + (size_t)first_row * ${k} + col;
                    const int n_cols = burin_min(STRIP, ${k} - col);

% if widen then
                    ${widen}(panel, tile, n_cols);
% else
                    const float *panel = (const float *)(const void *)tile;
% end
                    ${sums_of}(up ? ups : gates, panel, in, n_cols, n_rows);
                }
            }
            for (int i = 0; i < n_rows; i++) {
                const size_t row = (size_t)(first_row + i);
                ${times}(gates[i], ups[i]);
% if y.name == "q8" then
                uint8_t *out = y + row * burin_q8_stride(n_rows_out);
                burin_store_q8(out, gates[i], first_out / 32, n_rows_out);
% else
                ${y.c_type} *out = y + row * (size_t)n_rows_out + first_out;
                burin_store_${y.name}(out, gates[i], n_out);
% end
            }
        }
}
