% -- In: name, k (columns, as C spells it), sums_of (the kernel of rows and a tile, or of rows and a
% -- panel), widen (f32: what makes a panel of a tile, or false), x (format of the rows), x_stride
% -- (elements); f32: strip (columns), strip_bytes (of a tile).
% local floats = x.name == "f32"
/* sums[row] = the tile's 32 outputs of each row, for any number of rows. */
static void ${name}(
        float (*restrict sums)[32],
        const uint8_t *restrict tile,
        const ${x.c_type} *restrict x, /* (n_rows, ${k}) as ${x.name} */
% if floats and widen then
        int n_rows,
        float *restrict panel) /* (${strip}, 32): columns of the tile as floats */
% else
        int n_rows)
% end
{
% if floats then
    enum { STRIP = ${strip} }; /* columns: 16 KiB of floats, half of the L1 cache */

    for (int row = 0; row < n_rows; row++)
        memset(sums[row], 0, sizeof *sums);
    for (int col = 0; col < ${k}; col += STRIP, tile += ${strip_bytes}) {
        const int n_cols = burin_min(STRIP, ${k} - col);

% if widen then
        ${widen}(panel, tile, n_cols);
% else
        const float *panel = (const float *)(const void *)tile;
% end
        ${sums_of}(sums, panel, x + col, n_cols, n_rows);
    }
% else
    for (int row = 0, n = 0; row < n_rows; row += n) {
        n = burin_rows_at_once(n_rows - row);
        ${sums_of}(sums + row, tile, x + (size_t)row * ${x_stride}, n);
    }
% end
}
