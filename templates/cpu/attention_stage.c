% -- In: name, d (of a head), kv ("bf16", "f32"), window (tokens of the ring).
/* Keys and values of one head at positions from ... to - 1 of one block, laid out as a page has
 * them. Those before `start` are in the ring; from it on they are rows of this step, rounded as
 * the ring's are.   gen/ops/attention.lua */
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
% if kv == "bf16" then
    uint32_t *keys = (uint32_t *)(void *)block;
    uint16_t *values = (uint16_t *)(void *)(block + BURIN_BLOCK * ${d} * sizeof *values);
    uint16_t narrow[2 * ${d}];
% else
    float *keys = (float *)(void *)block;
    float *values = keys + BURIN_BLOCK * ${d};
% end

    for (int position = from; position < to; position++) {
        const int slot = position % BURIN_BLOCK;
        const float *key = k + (ptrdiff_t)(position - start) * k_stride;
        const float *value = v + (ptrdiff_t)(position - start) * v_stride;
% if kv == "bf16" then
        const uint16_t *token = (const uint16_t *)(const void *)ring;

        if (position < start) {
            token += (size_t)(position % ${window}) * 2 * ${d};
        } else {
            for (int i = 0; i < ${d}; i++)
                narrow[i] = burin_bf16_of_f32(key[i]);
            for (int i = 0; i < ${d}; i++)
                narrow[${d} + i] = burin_bf16_of_f32(value[i]);
            token = narrow;
        }
        for (int i = 0; i < ${d} / 2; i++)
            memcpy(keys + i * BURIN_BLOCK + slot, token + i * 2, sizeof *keys);
        uint16_t *restrict pairs = values + slot / 2 * 2 * ${d} + slot % 2;
        for (int i = 0; i < ${d}; i++)
            pairs[i * 2] = token[${d} + i];
% else

        if (position < start) {
            key = (const float *)(const void *)ring + (size_t)(position % ${window}) * 2 * ${d};
            value = key + ${d};
        }
        for (int i = 0; i < ${d}; i++)
            keys[i * BURIN_BLOCK + slot] = key[i];
        memcpy(values + slot * ${d}, value, ${d} * sizeof *values);
% end
    }
}
