% -- In: name, part, attend (functions for a tile and for a block of keys), d (of a head), d_q (all
% -- heads), tiles (of 16 rows), y ("u16", "float").
% local units, rows = (d + 63) // 64, 16 * tiles
/* y = softmax(scale * q . keys) values among the rows of one item.
 * gen/ops/packed_attention.lua
 * A block has ${rows} rows and a head. It takes the items that lie in its rows in turn; their keys
 * come in blocks of 64 from an item's first row on, so nobody's bits know what is beside it. */
extern "C" __global__ __launch_bounds__(128, 1) void ${name}(
        ${y} *__restrict__ y, /* (n_rows, ${d_q}) */
        const u16 *__restrict__ q, /* (n_rows, ${d_q}), rows q_stride apart */
        int q_stride,
        const u16 *__restrict__ k,
        int k_stride,
        const u16 *__restrict__ v,
        int v_stride,
        const int *__restrict__ item_begin, /* n_rows behind the last one's */
        int n_rows)
{
    enum { D = ${d}, TILES = ${tiles}, ROWS = ${rows}, UNITS = ${units} };
    __shared__ struct ${part}_shared s;
    struct ${part} p;
    const int first_row = (int)blockIdx.x * ROWS, head = (int)blockIdx.y * D;
    const int end_row = first_row + ROWS < n_rows ? first_row + ROWS : n_rows;
    const int column = threadIdx.x / 32 * 16 + threadIdx.x % 4 * 4; /* four of each 64 */

    for (int item = 0; item_begin[item] < end_row; item++) {
        const int begin = item_begin[item], n_item = item_begin[item + 1] - begin;
        const int row = begin < first_row ? first_row : begin;
        const int n = (begin + n_item < end_row ? begin + n_item : end_row) - row;
        struct ${attend}_source source;

        if (n <= 0)
            continue;
        source.k = k + (size_t)begin * (size_t)k_stride + head;
        source.v = v + (size_t)begin * (size_t)v_stride + head;
        source.k_stride = k_stride;
        source.v_stride = v_stride;
        source.from = 0;
        source.to = n_item;
        __syncthreads(); /* all are done with the item before */
        if (threadIdx.x < ROWS) {
            s.from[threadIdx.x] = 0;
            s.to[threadIdx.x] = n_item;
        }
        ${part}_queries(
                &s, q + (size_t)row * (size_t)q_stride + head, q_stride, n);
        __syncthreads();
        ${part}_clear(&p);
        for (int key = 0; key < n_item; key += 64)
            ${attend}(&p, &s, &source, n, key, key + 64 <= n_item);
        ${part}_reduce(&p, &s);

#pragma unroll
        for (int t = 0; t < TILES; t++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int i = attention_row(t, half);
                const size_t at = (size_t)(row + i) * ${d_q} + head + column;
                const float inverse = 1.0f / s.sum[i];

                if (i >= n)
                    continue;
#pragma unroll
                for (int u = 0; u < UNITS; u++)
                    for (int j = 0; j < 4 && u * 64 + column < D; j++) {
                        const float x = p.acc[t][u][attention_place(half, j)];
                        store_float(y, at + u * 64 + j, x * inverse);
                    }
            }
    }
}
