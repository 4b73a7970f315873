% -- In: name, d (of a head), n_kv_heads, window (tokens of the ring), slot_bytes (of a sequence).
/* Keys and values of the last ${window} rows of each sequence go into its ring: position p at index
 * p % ${window} of each head.   gen/ops/attention.lua
 * A block has a row; rows that only fill up a graph have position -1. */
extern "C" __global__ __launch_bounds__(128) void ${name}(
        u8 *__restrict__ ring, /* this layer's part of slot 0 */
        const int *__restrict__ state_of, /* (sequences): slots */
        const u16 *__restrict__ k, /* (n_tokens, ${n_kv_heads} * ${d}), rows k_stride apart */
        int k_stride,
        const u16 *__restrict__ v,
        int v_stride,
        const int *__restrict__ positions,
        const int *__restrict__ sequence_of,
        const int *__restrict__ sequence_begin,
        int n_tokens)
{
    const int row = (int)blockIdx.x;

    if (row >= n_tokens || positions[row] < 0)
        return;
    const int position = positions[row], sequence = sequence_of[row];
    if (sequence_begin[sequence + 1] - row > ${window})
        return; /* a later row of this step takes its place */
    u16 *slot = (u16 *)(ring + (size_t)state_of[sequence] * ${slot_bytes});
    u16 *token = slot + (size_t)(position % ${window}) * ${2 * d};
    for (int i = threadIdx.x; i < ${n_kv_heads * d}; i += 128) {
        u16 *at = token + (size_t)(i / ${d}) * ${2 * window * d} + i % ${d};
        at[0] = k[(size_t)row * (size_t)k_stride + i];
        at[${d}] = v[(size_t)row * (size_t)v_stride + i];
    }
}
