% -- In: name, d (columns for all layers), width (of one layer).
/* y = this layer's columns of x.   gen/ops/layer_columns.lua */
static void ${name}(
        const struct burin_team *t,
        float *restrict y, /* (rows, ${width}) */
        const float *restrict x, /* (rows, ${d}) */
        int layer,
        int n_rows)
{
    const struct burin_share rows = burin_share(t, n_rows);

    for (int row = rows.begin; row < rows.end; row++) {
        const float *from = x + (size_t)row * ${d} + (size_t)layer * ${width};
        memcpy(y + (size_t)row * ${width}, from, ${width} * sizeof *y);
    }
}
