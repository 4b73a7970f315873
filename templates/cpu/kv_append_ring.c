% -- In: name, d (of a head), n_kv_heads, window (tokens of the ring), slot_bytes (of a sequence), kv
% -- ("bf16", "f32").
% local element = kv == "bf16" and "uint16_t" or "float"
/* Keys and values of the last ${window} rows of each sequence go into its ring: position p at index
 * p % ${window} of each head.   gen/ops/attention.lua */
static void ${name}(
        const struct burin_team *t,
        uint8_t *restrict ring, /* this layer's part of slot 0 */
        const int32_t *restrict state_of, /* (sequences): slots */
        const float *restrict k, /* (n_tokens, ${n_kv_heads} * ${d}), rows k_stride apart */
        int k_stride,
        const float *restrict v,
        int v_stride,
        const int32_t *restrict positions,
        const int32_t *restrict sequence_of,
        const int32_t *restrict sequence_begin,
        int n_tokens)
{
    const struct burin_share rows = burin_share(t, n_tokens);

    for (int row = rows.begin; row < rows.end; row++) {
        const int sequence = sequence_of[row];
        uint8_t *slot = ring + (size_t)state_of[sequence] * ${slot_bytes};
        ${element} *restrict token = (${element} *)(void *)slot;

        if (sequence_begin[sequence + 1] - row > ${window})
            continue; /* a later row of this step takes its place */
        token += (size_t)(positions[row] % ${window}) * 2 * ${d};
        for (int head = 0; head < ${n_kv_heads}; head++, token += ${window} * 2 * ${d}) {
            const float *restrict key = k + (size_t)row * (size_t)k_stride + head * ${d};
            const float *restrict value = v + (size_t)row * (size_t)v_stride + head * ${d};
% if kv == "bf16" then

            for (int i = 0; i < ${d}; i++)
                token[i] = burin_bf16_of_f32(key[i]);
            for (int i = 0; i < ${d}; i++)
                token[${d} + i] = burin_bf16_of_f32(value[i]);
% else
            memcpy(token, key, ${d} * sizeof *token);
            memcpy(token + ${d}, value, ${d} * sizeof *token);
% end
        }
    }
}
