% -- In: name, n (experts), k (chosen), scaled (by an expert's own scale), y, logits (their types).
/* y = softmax of the chosen logits${scaled and ", times the experts' scales" or ""}, in the order of the slots.
 * A warp has a row.   gen/ops/route_weights.lua   <<<rows / 4, 128>>> */
extern "C" __global__ __launch_bounds__(128) void ${name}(
        ${y} *__restrict__ y, /* (rows, ${k}) */
        const ${logits} *__restrict__ logits, /* (rows, ${n}) */
        const int *__restrict__ experts, /* (rows, ${k}) */
% if scaled then
        const float *__restrict__ scale, /* (${n}) */
% end
        int n_rows)
{
    const int row = (int)(blockIdx.x * 4 + threadIdx.x / 32);
    const int lane = (int)threadIdx.x % 32;
    const size_t slots = (size_t)row * ${k};
    const size_t in = (size_t)row * ${n};
    float most = -__uint_as_float(0x7f800000u), sum = 0.0f;

    if (row >= n_rows)
        return;
    for (int i = lane; i < ${k}; i += 32)
        most = fmaxf(most, load_float(logits, in + experts[slots + i]));
    most = warp_max(most);
    for (int i = lane; i < ${k}; i += 32)
        sum += expf(load_float(logits, in + experts[slots + i]) - most);
    sum = warp_sum(sum);
    for (int i = lane; i < ${k}; i += 32) {
        const int expert = experts[slots + i];
        const float share = expf(load_float(logits, in + expert) - most) / sum;
% if scaled then
        store_float(y, slots + i, share * scale[expert]);
% else
        store_float(y, slots + i, share);
% end
    }
}
