% -- In: name, d (of a head), kv ("bf16", "f32"), window (tokens of the ring; 1 where there is none).
% local element = kv == "bf16" and "uint16_t" or "float"
% local word = kv == "bf16" and "uint32_t" or "float" -- of a key: what lies side by side
% local words = kv == "bf16" and d // 2 or d
/* Keys and values of one head at positions from ... to - 1 of one block, laid out as a page has
 * them. Those before `start` are in the ring; from it on they are rows of this step, rounded as
 * the ring's are.   gen/ops/attention.lua
 * 16 tokens at once, 16 words of each: a cache line is read and one is written. */
static void ${name}(
        uint8_t *restrict block, /* keys, then values */
        const uint8_t *restrict ring, /* (${window}, 2 * ${d}), this head's */
        const float *restrict k, /* this head's columns of the row at `start` */
        int k_stride,
        const float *restrict v,
        int v_stride,
        int start,
        int from,
        int to)
{
    enum { D = ${d}, WORDS = ${words} };
    const ${element} *kept = (const ${element} *)(const void *)ring;
    ${word} *keys = (${word} *)(void *)block;
    ${element} *values = (${element} *)(void *)(block + BURIN_BLOCK * D * sizeof *kept);

    for (int first = from, n; first < to; first += n) {
        const ${element} *key[16], *value[16];
        const int slot = first % BURIN_BLOCK;
% if kv == "bf16" then
        ${element} rounded[16][2 * D];
% end

        n = burin_min(16 - slot % 16, to - first);
        for (int i = 0; i < n; i++) {
            const ptrdiff_t row = first + i - start;
            if (row < 0) {
                key[i] = kept + (size_t)((first + i) % ${window}) * 2 * D;
                value[i] = key[i] + D;
                continue;
            }
% if kv == "bf16" then
            for (int j = 0; j < D; j++)
                rounded[i][j] = burin_bf16_of_f32(k[row * k_stride + j]);
            for (int j = 0; j < D; j++)
                rounded[i][D + j] = burin_bf16_of_f32(v[row * v_stride + j]);
            key[i] = rounded[i];
            value[i] = rounded[i] + D;
% else
            key[i] = k + row * k_stride;
            value[i] = v + row * v_stride;
% end
        }
        for (int word = 0; word < WORDS; word += 16)
            for (int i = 0; i < n; i++)
                for (int w = word; w < burin_min(word + 16, WORDS); w++)
% if kv == "bf16" then
                    memcpy(keys + w * BURIN_BLOCK + slot + i, key[i] + w * 2, sizeof *keys);
% else
                    keys[w * BURIN_BLOCK + slot + i] = key[i][w];
% end
% if kv == "bf16" then
        for (int i = 0; i < n; i++) {
            ${element} *restrict pairs = values + (slot + i) / 2 * 2 * D;

            if ((slot + i) % 2 == 0 && i + 1 < n) {
                for (int j = 0; j < D; j++) {
                    pairs[j * 2] = value[i][j];
                    pairs[j * 2 + 1] = value[i + 1][j];
                }
                i++;
            } else {
                for (int j = 0; j < D; j++)
                    pairs[j * 2 + (slot + i) % 2] = value[i][j];
            }
        }
% else
        for (int i = 0; i < n; i++)
            memcpy(values + (slot + i) * D, value[i], D * sizeof *values);
% end
    }
}
