% -- In: name, k (columns, as C spells it), part_of (the product of a part and a tile), gather (what puts
% -- a part's rows side by side), x (their format), x_stride (elements), slots (choices that share a
% -- row of x: 1, or as C spells it), n (experts), rows (a part), widen (part_of needs a panel, or false),
% -- panel_at, made_at (bytes, in scratch), tile_bytes, chunk (tiles, or pairs, that lie in 256 KiB),
% -- times (gate's function times up, or false: one weight), y (format of the result).
% local glu = times and true or false
% local of_x = slots == 1 and "choices" or "choices / " .. slots
/* y = ${glu and "f(x gate') * (x up')" or "x w'"} of each choice's expert, 32 outputs at a time.
 * ${glu and "gen/ops/experts_glu.lua" or "gen/ops/experts_down.lua"}
 * A unit of work is one tile${glu and " of gate and of up" or ""} of an expert and up to ROWS of its choices: what nobody
 * chose isn't read, the others once. */
static void ${name}(
        const struct burin_team *t,
        ${y.c_type} *restrict y, /* (choices, n_rows_out) as ${y.name} */
        const ${x.c_type} *restrict x, /* (${of_x}, ${k}) as ${x.name} */
        const uint8_t *restrict w, /* of each expert ${glu and "gate's and up's tiles in turn" or "tiles of 32 rows"} */
        const int32_t *restrict choices, /* by expert */
        const int32_t *restrict begin, /* of each expert's, (${n} + 1) */
        int n_rows_out,
        uint8_t *restrict scratch)
{
    enum {
        ROWS = ${rows}, /* that stay in the L2 cache from tile to tile */
        TILE = ${tile_bytes}, /* bytes */
        CHUNK = ${chunk}, /* ${glu and "pairs of tiles" or "tiles"} in 256 KiB, adjacent ones for one thread */
    };
    const int n_tiles = (n_rows_out + 31) / 32;
    const int n_parts = burin_expert_parts(begin, ${n}, ROWS);
    const struct burin_deal deal = burin_deal(t, n_tiles * n_parts, CHUNK);
% if glu then
    float(*sums)[32] = (float(*)[32])(void *)scratch; /* (ROWS, 32), of the gate */
    float(*ups)[32] = sums + ROWS;
% else
    float(*sums)[32] = (float(*)[32])(void *)scratch; /* (ROWS, 32) */
% end
% if widen then
    float *panel = (float *)(void *)(scratch + ${panel_at});
% end
    ${x.c_type} *gathered = (${x.c_type} *)(void *)(scratch + ${made_at});
    struct burin_expert_part part = { .index = -1 };

    for (int at = deal.begin; at < deal.end; at += deal.step)
        for (int unit = at; unit < burin_min(at + deal.chunk, deal.end); unit++) {
            const int first_out = unit % n_tiles * 32;
% if y.name ~= "q8" then
            const int n_out = burin_min(32, n_rows_out - first_out);
% end

            if (part.index < unit / n_tiles) {
                while (part.index < unit / n_tiles)
                    burin_expert_part_next(&part, begin, ROWS);
                ${gather}(gathered, x, choices + part.first, part.n_rows);
            }
            const size_t n_before = (size_t)(part.expert * n_tiles + first_out / 32);
            const uint8_t *tile = w + n_before * ${glu and "2 * TILE" or "TILE"};
% local panel = widen and ", panel" or ""
            ${part_of}(sums, tile, gathered, part.n_rows${panel});
% if glu then
            ${part_of}(ups, tile + TILE, gathered, part.n_rows${panel});
% end
            for (int i = 0; i < part.n_rows; i++) {
                const size_t row = (size_t)choices[part.first + i];
% if glu then
                ${times}(sums[i], ups[i]);
% end
% if y.name == "q8" then
                uint8_t *out = y + row * burin_q8_stride(n_rows_out);
                burin_store_q8(out, sums[i], first_out / 32, n_rows_out);
% else
                ${y.c_type} *out = y + row * (size_t)n_rows_out + first_out;
                burin_store_${y.name}(out, sums[i], n_out);
% end
            }
        }
}
