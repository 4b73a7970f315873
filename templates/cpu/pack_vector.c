% -- In: name.
/* A vector, a norm's weight for instance, as it is. */
static void ${name}(
        uint8_t *restrict tile,
        const uint8_t *const *restrict rows, /* rows[0]: the vector, floats */
        int n_rows,                          /* 1 */
        int64_t n_cols)
{
    (void)n_rows;
    memcpy(tile, rows[0], (size_t)n_cols * 4);
}
