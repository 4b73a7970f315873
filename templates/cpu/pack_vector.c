% -- In: name, format ("f32", "f16", "bf16": what the file holds).
/* A vector of ${format}, a norm's weight for instance, as plain floats. */
static void ${name}(
        uint8_t *restrict tile,
        const uint8_t *const *restrict rows, /* rows[0]: the vector */
        int n_rows,                          /* 1 */
        int64_t n_cols)
{
    (void)n_rows;
% if format == "f32" then
    memcpy(tile, rows[0], (size_t)n_cols * 4);
% else
    for (int64_t i = 0; i < n_cols; i++) {
        const float x = burin_f32_of_${format}(burin_load_u16(rows[0] + i * 2));
        memcpy(tile + i * 4, &x, sizeof x);
    }
% end
}
