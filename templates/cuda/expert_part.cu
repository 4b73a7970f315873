% -- In: name, n (experts, as C spells it), rows (of a part).
/* The index-th part of up to ${rows} choices that have their expert in common: its expert, or -1
 * behind the last part. `begin` has n + 1 ends; all lanes of a warp look together. */
DEVICE int ${name}(const int *begin, int index, int *first, int *n_rows)
{
    const int lane = (int)threadIdx.x % 32;
    int before = 0; /* parts of experts that have been looked at */

    for (int base = 0; base < ${n}; base += 32) {
        const int from = begin[min(base + lane, ${n})];
        const int n = begin[min(base + lane + 1, ${n})] - from;
        const int parts = (n + ${rows - 1}) / ${rows};
        int up_to = parts; /* of the lanes up to this one */

        for (int step = 1; step < 32; step *= 2) {
            const int left = __shfl_sync(0xffffffffu, up_to, (lane - step) & 31);
            up_to += lane >= step ? left : 0;
        }
        const int nth = index - before - (up_to - parts);
        const u32 found = __ballot_sync(0xffffffffu, nth >= 0 && nth < parts);
        if (found) {
            const int lane_of = __ffs((int)found) - 1;
            *first = __shfl_sync(0xffffffffu, from + nth * ${rows}, lane_of);
            *n_rows = __shfl_sync(0xffffffffu, min(n - nth * ${rows}, ${rows}), lane_of);
            return base + lane_of;
        }
        before += __shfl_sync(0xffffffffu, up_to, 31);
    }
    return -1;
}
