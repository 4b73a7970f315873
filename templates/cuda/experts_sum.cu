% -- In: name, d (last dim of x), k (chosen by a token), y, x, weights (their types).
/* y = the sum of a token's ${k} rows, each times its weight, in the order of the slots.
 * gen/ops/experts_sum.lua   <<<(tokens, ${d} / 256), 256>>> */
extern "C" __global__ __launch_bounds__(256) void ${name}(
        ${y} *__restrict__ y, /* (n_tokens, ${d}) */
        const ${x} *__restrict__ x, /* (n_tokens * ${k}, ${d}) */
        const ${weights} *__restrict__ weights, /* (n_tokens, ${k}) */
        int n_tokens)
{
    const size_t token = blockIdx.x;
    const int column = (int)(blockIdx.y * 256 + threadIdx.x);
    float sum = 0.0f;

    if (column >= ${d})
        return;
    for (int slot = 0; slot < ${k}; slot++) {
        const size_t choice = token * ${k} + slot;
        sum += load_float(x, choice * ${d} + column) * load_float(weights, choice);
    }
    store_float(y, token * ${d} + column, sum);
}
