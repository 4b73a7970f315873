% -- In: name, n (experts), k (chosen by a token).
/* y[e]: how many choices fall on experts before e.   gen/ops/expert_begin.lua
 * Each block counts for its own e, so none waits for another's count. Counts are summed as
 * floats, which hold whole numbers below 2^24 exactly.   <<<${n} + 1, 256>>> */
extern "C" __global__ __launch_bounds__(256) void ${name}(
        int *__restrict__ y, /* (${n} + 1) */
        const int *__restrict__ experts, /* (n_tokens, ${k}) */
        int n_tokens)
{
    const int e = (int)blockIdx.x;
    int count = 0;

    for (int choice = (int)threadIdx.x; choice < n_tokens * ${k}; choice += 256)
        count += experts[choice] < e;
    const float sum = block_sum<256>((float)count);
    if (threadIdx.x == 0)
        y[e] = (int)sum;
}
