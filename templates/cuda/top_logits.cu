% -- In: name, n_parts (lists of a row), words (of a list), list.
/* A row's 64 largest of its parts', largest first, and the logarithm of its sum of e^x.
 * gen/ops/top_logits.lua
 * A warp has a row. It looks at all parts' largest, then at all their second: it is done where
 * none is better than what it has, most often soon.   <<<rows, 32>>> */
extern "C" __global__ __launch_bounds__(32) void ${name}(
        int *__restrict__ y, /* (rows, ${words}): ids, logits, the largest, log sum e^x */
        const int *__restrict__ parts, /* (rows, ${n_parts}, ${words}), as top_parts gives them */
        int n_rows)
{
    const float infinity = __uint_as_float(0x7f800000u);
    const int lane = (int)threadIdx.x;
    const int *of_row = parts + (size_t)blockIdx.x * ${n_parts} * ${words};
    ${list} list = { 0, 0 };
    float most = -infinity, sum = 0.0f;
    bool found = true;

    for (int rank = 0; rank < 64 && found; rank++) {
        const u64 last = ${list}_last(&list);
        bool better = false;

        for (int first = 0; first < ${n_parts}; first += 32) {
            const int part = first + lane;
            const int *from = of_row + (size_t)part * ${words} + rank;
            u64 key = 0;

            if (part < ${n_parts} && from[0] >= 0)
                key = ${list}_key(__int_as_float(from[64]), from[0]);
            better = better || key > last;
            ${list}_add(&list, key, lane);
        }
        found = __ballot_sync(0xffffffffu, better) != 0;
    }
    for (int part = lane; part < ${n_parts}; part += 32)
        most = fmaxf(most, __int_as_float(of_row[(size_t)part * ${words} + 128]));
    most = warp_max(most);
    for (int part = lane; part < ${n_parts}; part += 32) {
        const int *of_part = of_row + (size_t)part * ${words};
        const float less = __int_as_float(of_part[128]) - most;
        sum += __int_as_float(of_part[129]) * (less == 0.0f ? 1.0f : expf(less));
    }
    sum = warp_sum(sum);

    int *to = y + (size_t)blockIdx.x * ${words};
    ${list}_store(to, &list, lane);
    if (lane == 0) {
        to[128] = __float_as_int(most);
        to[129] = __float_as_int(most + logf(sum));
    }
}
