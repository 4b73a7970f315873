% -- In: name, d (of a head), group (query heads for a KV head), kv ("bf16", "f32"), window (true
% -- where rows don't see all that is before them).
% if window then
/* Rows of a tile meet one block of keys and values. Each sees some of the keys; what lies
 * outside is not read as a number, or a stranger's NaN would get in. Sums run over d, and then
 * over keys, in order; 16 at once, for the compiler's widest vectors. */
% else
/* All rows of a tile meet one block of keys and values. Its first query sees `visible` keys
 * of the block, each further one sees one more, and none more than there are; what lies
 * behind is not read as a number, or a stranger's NaN would get in. Sums run over d, and then
 * over keys, in order; 16 at once, for the compiler's widest vectors. */
% end
static void ${name}(
        struct burin_partial p,
        const float *restrict q, /* (n_rows, ${d}), scaled: scores are in units of log 2 */
        const uint8_t *restrict keys, /* as gen/ops/attention.lua says */
        const uint8_t *restrict values,
        int n_rows,
% if window then
        const int *restrict from, /* of each token: the first key that it sees */
        const int *restrict to) /* and one past the last */
% else
        int visible)
% end
{
% if kv == "bf16" then
% if window then
    const int n_seen = to[(n_rows - 1) / ${group}];
% else
    const int n_seen = burin_min(visible + (n_rows - 1) / ${group}, BURIN_BLOCK);
% end
    const uint32_t *key_pairs = (const uint32_t *)(const void *)keys;
    const uint32_t *value_pairs = (const uint32_t *)(const void *)values;
    float k[${d}][BURIN_BLOCK], v[BURIN_BLOCK][${d}];

    for (int i = 0; i < ${d}; i += 2)
        for (int key = 0; key < BURIN_BLOCK; key++) {
            const uint32_t pair = key_pairs[i / 2 * BURIN_BLOCK + key];
            k[i][key] = burin_f32_of_bits(pair << 16);
            k[i + 1][key] = burin_f32_of_bits(pair & 0xffff0000);
        }
% if window then
    for (int key = from[0] / 2 * 2; key < n_seen; key += 2)
% else
    for (int key = 0; key < n_seen; key += 2)
% end
        for (int i = 0; i < ${d}; i++) {
            const uint32_t pair = value_pairs[key / 2 * ${d} + i];
            v[key][i] = burin_f32_of_bits(pair << 16);
            v[key + 1][i] = burin_f32_of_bits(pair & 0xffff0000);
        }
% else
    const float(*k)[BURIN_BLOCK] = (const float(*)[BURIN_BLOCK])(const void *)keys;
    const float(*v)[${d}] = (const float(*)[${d}])(const void *)values;
% end

    for (int row = 0; row < n_rows; row++) {
        const float *restrict query = q + row * ${d};
        float *restrict acc = p.acc + row * ${d};
% if window then
        const int begin = from[row / ${group}], seen = to[row / ${group}];
% else
        const int seen = burin_min(visible + row / ${group}, BURIN_BLOCK);
% end
        float score[BURIN_BLOCK];

        for (int first = 0; first < BURIN_BLOCK; first += 16) {
            float part[16] = { 0 };
            for (int i = 0; i < ${d}; i++)
                for (int lane = 0; lane < 16; lane++)
                    part[lane] += query[i] * k[i][first + lane];
            for (int lane = 0; lane < 16; lane++)
                score[first + lane] = part[lane];
        }
% if window then
        for (int key = 0; key < begin; key++)
            score[key] = -INFINITY;
% end
        for (int key = seen; key < BURIN_BLOCK; key++)
            score[key] = -INFINITY;

        float max = p.max[row];
        for (int key = 0; key < BURIN_BLOCK; key++)
            max = score[key] > max ? score[key] : max;
        const float scale = burin_exp2(p.max[row] - max);
        float sum[16] = { 0 };
        for (int key = 0; key < BURIN_BLOCK; key++)
            score[key] = burin_exp2(score[key] - max);
        for (int key = 0; key < BURIN_BLOCK; key += 16)
            for (int lane = 0; lane < 16; lane++)
                sum[lane] += score[key + lane];
        for (int width = 8; width > 0; width /= 2)
            for (int lane = 0; lane < width; lane++)
                sum[lane] += sum[lane + width];
        p.max[row] = max;
        p.sum[row] = p.sum[row] * scale + sum[0];

        for (int i = 0; i < ${d}; i++)
            acc[i] *= scale;
        for (int key = ${window and "begin" or "0"}; key < seen; key++)
            for (int i = 0; i < ${d}; i++)
                acc[i] += score[key] * v[key][i];
    }
}
