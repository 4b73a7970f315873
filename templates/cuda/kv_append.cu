% -- In: name, d (of a head), n_kv_heads, page_bytes, head_bytes (one head's keys and values in a
% -- page).
/* Keys and values of each row go into its position's slot of its page.
 * gen/ops/attention.lua has the layout.
 * A block has 8 rows and a head: neighbours in a page are written by neighbouring threads. */
extern "C" __global__ __launch_bounds__(128) void ${name}(
        u8 *__restrict__ pages, /* this layer's part of page 0 */
        const u16 *__restrict__ k, /* (n_tokens, ${n_kv_heads} * ${d}), rows k_stride apart */
        int k_stride,
        const u16 *__restrict__ v,
        int v_stride,
        const int *__restrict__ positions, /* -1: not to be kept */
        const int *__restrict__ sequence_of,
        const int *__restrict__ page_table, /* (sequences, max_pages) */
        int max_pages,
        int n_tokens)
{
    const int row = (int)(blockIdx.x * 8 + threadIdx.x % 8), head = (int)blockIdx.y;

    if (row >= n_tokens || positions[row] < 0)
        return;
    const int position = positions[row], slot = position % 64;
    const int *table = page_table + (size_t)sequence_of[row] * (size_t)max_pages;
    u8 *at = pages + (size_t)table[position / 64] * ${page_bytes} + (size_t)head * ${head_bytes};
    u32 *keys = (u32 *)at + slot;
    u16 *values = (u16 *)(at + ${head_bytes // 2}) + slot / 2 * ${2 * d} + slot % 2;
    const u16 *key = k + (size_t)row * (size_t)k_stride + head * ${d};
    const u16 *value = v + (size_t)row * (size_t)v_stride + head * ${d};

    for (int i = threadIdx.x / 8; i < ${d // 2}; i += 16)
        keys[i * 64] = *(const u32 *)(key + i * 2);
    for (int i = threadIdx.x / 8; i < ${d}; i += 16)
        values[i * 2] = value[i];
}
