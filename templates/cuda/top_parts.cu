% -- In: name, d (columns), part (of them, of a warp), n_parts, words (of a list), logits (their type), list.
/* Of each ${part} columns of a row the 64 largest, with the largest of all and the sum of
 * e^(x - largest).   gen/ops/top_parts.lua
 * A warp has a part, and reads it once. What isn't among the best 64 so far costs a comparison;
 * of numbers in no order that is all but 64 (1 + ln(${part} / 64)) of them.
 * <<<(rows, ${n_parts} / 4), 128>>> */
extern "C" __global__ __launch_bounds__(128) void ${name}(
        int *__restrict__ y, /* (rows, ${n_parts}, ${words}): ids, numbers, largest, sum */
        const ${logits} *__restrict__ logits, /* (rows, ${d}) */
        int n_rows)
{
    const float infinity = __uint_as_float(0x7f800000u);
    const int part = (int)(blockIdx.y * 4 + threadIdx.x / 32);
    const int lane = (int)threadIdx.x % 32;
    const size_t row = blockIdx.x;
    const int begin = part * ${part};
    ${list} list = { 0, 0 };
    float most = -infinity, sum = 0.0f;

    if (part >= ${n_parts})
        return;
    for (int first = begin; first < begin + ${part} && first < ${d}; first += 128) {
        float x[4];

        for (int j = 0; j < 4; j++) { /* several are under way at once */
            const int column = first + j * 32 + lane;
            x[j] = column < ${d} ? load_float(logits, row * ${d} + column) : -infinity;
        }
        const float before = most;
        most = fmaxf(fmaxf(most, fmaxf(x[0], x[1])), fmaxf(x[2], x[3]));
        sum *= before == most ? 1.0f : expf(before - most);
        for (int j = 0; j < 4; j++) {
            const int column = first + j * 32 + lane;
            sum += x[j] == -infinity ? 0.0f : expf(x[j] - most);
            ${list}_add(&list, column < ${d} ? ${list}_key(x[j], column) : 0, lane);
        }
    }
    int *to = y + (row * ${n_parts} + part) * ${words};
    const float of_warp = warp_max(most);
    sum = warp_sum(most == of_warp ? sum : sum * expf(most - of_warp));
    ${list}_store(to, &list, lane);
    if (lane == 0) {
        to[128] = __float_as_int(of_warp);
        to[129] = __float_as_int(sum);
    }
}
