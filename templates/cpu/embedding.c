% -- In: name, d (columns of weight), gather (reads one row of a tile), tile_bytes.
/* y = weight[token_ids]: rows gathered from the packed table.   gen/ops/embedding.lua */
static void ${name}(
        const struct burin_team *t,
        float *restrict y, /* (tokens, ${d}) */
        const int32_t *restrict token_ids, /* (tokens) */
        const uint8_t *restrict weight, /* tiles of 32 rows */
        int n_rows)
{
    const struct burin_share rows = burin_share(t, n_rows);

    for (int row = rows.begin; row < rows.end; row++) {
        const int id = token_ids[row];
        const uint8_t *tile = weight + (size_t)(id / 32) * ${tile_bytes};
        ${gather}(y + (size_t)row * ${d}, tile, id % 32);
    }
}
