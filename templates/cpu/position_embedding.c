% -- In: name, d (last dim of x), n (positions of an axis), axis_first (the table is (2, n, d), not
% -- (n, 2, d)), gather (reads one row of a tile), tile_bytes.
/* x += weight of the row's column + weight of its line, in place.
 * gen/ops/position_embedding.lua */
static void ${name}(
        const struct burin_team *t,
        float *restrict x, /* (rows, ${d}) */
        const uint8_t *restrict weight, /* tiles of 32 rows */
        const int32_t *restrict positions, /* (rows, 2) */
        int n_rows)
{
    const struct burin_share rows = burin_share(t, n_rows);

    for (int row = rows.begin; row < rows.end; row++) {
        const int32_t *position = positions + (size_t)row * 2;
        float *restrict to = x + (size_t)row * ${d};

        for (int axis = 0; axis < 2; axis++) {
% if axis_first then
            const int at = axis * ${n} + position[axis];
% else
            const int at = position[axis] * 2 + axis;
% end
            float of_axis[${d}];
            ${gather}(of_axis, weight + (size_t)(at / 32) * ${tile_bytes}, at % 32);
            for (int i = 0; i < ${d}; i++)
                to[i] += of_axis[i];
        }
    }
}
