#include "runtime/media/sample.h"

#include <math.h>

int64_t burin_sample_count(struct burin_frame_sampling sampling, int64_t total, double fps)
{
    int64_t n = total;
    if (sampling.n_frames)
        n = sampling.n_frames;
    else if (sampling.per_second > 0)
        n = (int64_t)((double)total / fps * sampling.per_second);
    if (n > total)
        n = total;
    return n < 1 ? 1 : n;
}

int64_t burin_sample_index(
        struct burin_frame_sampling sampling, int64_t i, int64_t n, int64_t total)
{
    if (sampling.spread == BURIN_SPREAD_EVEN)
        return i * total / n;
    return n == 1 ? 0
                  : (int64_t)nearbyint((double)i * (double)(total - 1) / (double)(n - 1));
}
