% -- In: name, d (of a head), n_kv_heads, page_bytes, head_bytes (one head's keys and values
% -- in a page), kv ("bf16", "f32").
/* Keys and values of each row go into its position's slot of its page.
 * gen/ops/attention.lua has the layout. */
static void ${name}(
        const struct burin_team *t,
        uint8_t *restrict pages, /* this layer's part of page 0 */
        const float *restrict k, /* (n_tokens, ${n_kv_heads} * ${d}), rows k_stride apart */
        int k_stride,
        const float *restrict v,
        int v_stride,
        const int32_t *restrict positions,
        const int32_t *restrict sequence_of,
        const int32_t *restrict page_table, /* (sequences, max_pages) */
        int max_pages,
        int n_tokens)
{
    const struct burin_share rows = burin_share(t, n_tokens);

    for (int row = rows.begin; row < rows.end; row++) {
        const int32_t *table = page_table + (size_t)sequence_of[row] * (size_t)max_pages;
        const int slot = positions[row] % BURIN_BLOCK;
        uint8_t *page = pages + (size_t)table[positions[row] / BURIN_BLOCK] * ${page_bytes};

        for (int head = 0; head < ${n_kv_heads}; head++) {
            const float *restrict key = k + (size_t)row * (size_t)k_stride + head * ${d};
            const float *restrict value = v + (size_t)row * (size_t)v_stride + head * ${d};
            uint8_t *at = page + (size_t)head * ${head_bytes};
% if kv == "bf16" then
            uint32_t *restrict keys = (uint32_t *)(void *)at + slot;
            uint16_t *restrict values = (uint16_t *)(void *)(at + ${head_bytes} / 2);
            uint16_t narrow[${d}];

            for (int i = 0; i < ${d}; i++)
                narrow[i] = burin_bf16_of_f32(key[i]);
            for (int i = 0; i < ${d} / 2; i++)
                memcpy(keys + i * BURIN_BLOCK, narrow + i * 2, sizeof *keys);
            for (int i = 0; i < ${d}; i++)
                narrow[i] = burin_bf16_of_f32(value[i]);
            values += slot / 2 * 2 * ${d} + slot % 2;
            for (int i = 0; i < ${d}; i++)
                values[i * 2] = narrow[i];
% else
            float *restrict keys = (float *)(void *)at + slot;
            float *restrict values = (float *)(void *)(at + ${head_bytes} / 2);

            for (int i = 0; i < ${d}; i++)
                keys[i * BURIN_BLOCK] = key[i];
            memcpy(values + slot * ${d}, value, ${d} * sizeof *values);
% end
        }
    }
}
