/* The ${n} best of what a warp has seen, best first: lane l has numbers l and l + 32 of the list.
 * A number and its column are one key, so that of equal numbers the lower column is before, in
 * whatever order they come. 0 is less than any key: no number is there. */
struct ${name} {
    u64 first, second;
};

DEVICE u64 ${name}_key(float x, int column)
{
    const u32 bits = __float_as_uint(x + 0.0f); /* -0 is 0 */
    const u32 ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;

    return (u64)ordered << 32 | (u32)~column;
}

DEVICE int ${name}_column(u64 key)
{
    return key ? (int)~(u32)key : -1;
}

DEVICE float ${name}_number(u64 key)
{
    const u32 ordered = (u32)(key >> 32);

    return __uint_as_float(ordered & 0x80000000u ? ordered & 0x7fffffffu : ~ordered);
}

DEVICE u64 ${name}_last(const ${name} *list)
{
    return __shfl_sync(0xffffffffu, list->second, 31);
}

/* Each lane has a key, or 0. What is worse is moved by a place for each that comes in. */
DEVICE void ${name}_add(${name} *list, u64 key, int lane)
{
    u64 last = ${name}_last(list);

    for (;;) {
        const u32 better = __ballot_sync(0xffffffffu, key > last);
        if (better == 0)
            return;
        const int from = __ffs((int)better) - 1;
        const u64 next = __shfl_sync(0xffffffffu, key, from);
        const u64 before = __shfl_up_sync(0xffffffffu, list->first, 1);
        const u64 middle = __shfl_sync(0xffffffffu, list->first, 31);
        const u64 behind = __shfl_up_sync(0xffffffffu, list->second, 1);
        const u64 above = lane == 0 ? middle : behind;

        if (next > list->first)
            list->first = lane == 0 || before > next ? next : before;
        if (next > list->second)
            list->second = above > next ? next : above;
        key = lane == from ? 0 : key;
        last = ${name}_last(list);
    }
}

/* ids, then numbers, ${n} of each. */
DEVICE void ${name}_store(int *y, const ${name} *list, int lane)
{
    y[lane] = ${name}_column(list->first);
    y[32 + lane] = ${name}_column(list->second);
    y[64 + lane] = __float_as_int(${name}_number(list->first));
    y[96 + lane] = __float_as_int(${name}_number(list->second));
}
