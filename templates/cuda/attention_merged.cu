% -- In: name, y ("u16", "float"), spans.
/* Stands where few rows have their parts merged: of many rows each block has done so itself. */
extern "C" __global__ __launch_bounds__(32) void ${name}(
        ${y} *, const float *, const int *${spans and ", const int *" or ""}, int)
{
}
