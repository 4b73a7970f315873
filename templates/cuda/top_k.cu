% -- In: name, n (columns), k (of them), logits (their type).
/* The columns of a row's ${k} largest, largest first; of equal ones the lower column first. NaN is
 * as small as a number can be, so that there are always so many.   gen/ops/top_k.lua
 * A warp has a row, and looks for the largest behind the last one ${k} times: no list is kept
 * of what is gone, and each look but the first finds the row in the cache.
 * <<<rows / 4, 128>>> */
extern "C" __global__ __launch_bounds__(128) void ${name}(
        int *__restrict__ y, /* (rows, ${k}) */
        const ${logits} *__restrict__ logits, /* (rows, ${n}) */
        int n_rows)
{
    const float infinity = __uint_as_float(0x7f800000u);
    const int row = (int)(blockIdx.x * 4 + threadIdx.x / 32);
    const int lane = (int)threadIdx.x % 32;
    float last = infinity; /* the one found before, and its column */
    int last_at = -1;

    if (row >= n_rows)
        return;
    for (int slot = 0; slot < ${k}; slot++) {
        float most = -infinity;
        int at = ${n};

        for (int i = lane; i < ${n}; i += 32) {
            const float read = load_float(logits, (size_t)row * ${n} + i);
            const float x = read == read ? read : -infinity;
            const bool is_left = x < last || (x == last && i > last_at);
            if (is_left && (at == ${n} || x > most)) {
                most = x;
                at = i;
            }
        }
        for (int step = 16; step > 0; step /= 2) {
            const float x = __shfl_xor_sync(0xffffffffu, most, step);
            const int i = __shfl_xor_sync(0xffffffffu, at, step);
            if (x > most || (x == most && i < at)) {
                most = x;
                at = i;
            }
        }
        if (lane == 0)
            y[(size_t)row * ${k} + slot] = at;
        last = most;
        last_at = at;
    }
}
