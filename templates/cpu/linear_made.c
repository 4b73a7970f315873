% -- In: name, k (columns, as C spells it), part_of (the product of a part and a tile), make (what makes
% -- a part's rows), from (type of what they are made from), x (their format), x_stride (elements),
% -- rows (a part), widen (part_of needs a panel, or false), panel_at, made_at (bytes, in scratch),
% -- tile_bytes, chunk (tiles that lie in 256 KiB), op (whose file), clips (rows and results), bias.
/* y = x w'${bias and " + bias" or ""}, a tile of 32 outputs at a time.   gen/ops/${op}.lua
 * A unit of work is one tile and up to ROWS rows, which each thread makes for itself. */
static void ${name}(
        const struct burin_team *t,
        float *restrict y, /* (n_rows, n_rows_out) */
        const ${from} *restrict x, /* (n_rows, ${k}) */
        const uint8_t *restrict w, /* (n_rows_out, ${k}), tiles of 32 rows */
% if bias then
        const float *restrict bias, /* (n_rows_out) */
% end
% if clips then
        const float *in_min,
        const float *in_max,
        const float *out_min,
        const float *out_max,
% end
        int n_rows_out,
        int n_rows,
        uint8_t *restrict scratch)
{
    enum {
        ROWS = ${rows}, /* that stay in the L2 cache from tile to tile */
        TILE = ${tile_bytes}, /* bytes */
        CHUNK = ${chunk}, /* tiles in 256 KiB, adjacent ones for one thread */
    };
    const int n_tiles = (n_rows_out + 31) / 32;
    const int n_parts = (n_rows + ROWS - 1) / ROWS;
    const struct burin_deal deal = burin_deal(t, n_tiles * n_parts, CHUNK);
    float(*sums)[32] = (float(*)[32])(void *)scratch; /* (ROWS, 32) */
% if widen then
    float *panel = (float *)(void *)(scratch + ${panel_at});
% end
    ${x.c_type} *made = (${x.c_type} *)(void *)(scratch + ${made_at});
    int made_part = -1;

    for (int at = deal.begin; at < deal.end; at += deal.step)
        for (int unit = at; unit < burin_min(at + deal.chunk, deal.end); unit++) {
            const int first_row = unit / n_tiles * ROWS;
            const int n = burin_min(ROWS, n_rows - first_row);
            const int first_out = unit % n_tiles * 32;
            const int n_out = burin_min(32, n_rows_out - first_out);
            const uint8_t *tile = w + (size_t)first_out / 32 * TILE;
            float *out = y + (size_t)first_row * (size_t)n_rows_out + first_out;

            if (made_part != unit / n_tiles) {
                const ${from} *in = x + (size_t)first_row * ${k};
% if clips then
                ${make}(made, in, *in_min, *in_max, n);
% else
                ${make}(made, in, n);
% end
                made_part = unit / n_tiles;
            }
% if widen then
            ${part_of}(sums, tile, made, n, panel);
% else
            ${part_of}(sums, tile, made, n);
% end
            for (int i = 0; i < n; i++, out += n_rows_out)
                for (int o = 0; o < n_out; o++)
% if clips then
                    out[o] = burin_clamp(sums[i][o], *out_min, *out_max);
% elseif bias then
                    out[o] = sums[i][o] + bias[first_out + o];
% else
                    out[o] = sums[i][o];
% end
        }
}
