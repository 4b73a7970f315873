% -- In: name, n (experts), k (chosen by a token).
/* Choices ordered by expert, within one by number; choice c is slot c % ${k} of token c / ${k}.
 * gen/ops/expert_rows.lua
 * A block has an expert and goes through all choices, 256 at a time: each of its own has its
 * place behind those of lanes, warps and rounds before.   <<<${n}, 256>>> */
extern "C" __global__ __launch_bounds__(256) void ${name}(
        int *__restrict__ y, /* (n_tokens * ${k}) */
        const int *__restrict__ experts, /* (n_tokens, ${k}) */
        const int *__restrict__ begin, /* (${n} + 1) */
        int n_tokens)
{
    __shared__ int of_warp[8];
    const int expert = (int)blockIdx.x;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int next = begin[expert];

    for (int first = 0; first < n_tokens * ${k}; first += 256) {
        const int choice = first + (int)threadIdx.x;
        const bool is_ours = choice < n_tokens * ${k} && experts[choice] == expert;
        const u32 ours = __ballot_sync(0xffffffffu, is_ours);

        if (lane == 0)
            of_warp[warp] = __popc(ours);
        __syncthreads();
        int before = __popc(ours & ((1u << lane) - 1)), all = 0;
        for (int w = 0; w < 8; w++) {
            before += w < warp ? of_warp[w] : 0;
            all += of_warp[w];
        }
        if (is_ours)
            y[next + before] = choice;
        next += all;
        __syncthreads(); /* of_warp is written again */
    }
}
