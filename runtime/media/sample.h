/* runtime/media/sample.h -- Which frames of a video are looked at.
 *
 * Threads  Pure. */
#ifndef BURIN_MEDIA_SAMPLE_H
#define BURIN_MEDIA_SAMPLE_H

#include <stdint.h>

enum burin_spread {
    BURIN_SPREAD_EVEN, /* floor(i * total / n), from the first on: Gemma 4 (transformers'
                          default_sample_indices_fn) */
    BURIN_SPREAD_ENDS, /* from the first to the last: Qwen, and vLLM for all */
};

/* A number of frames, or so many a second of video; 0 is not said. A number wins. */
struct burin_frame_sampling {
    int n_frames;
    double per_second;
    enum burin_spread spread;
};

/* How many frames of a video of `total` at `fps`: at least one, never more than there are. */
int64_t burin_sample_count(struct burin_frame_sampling sampling, int64_t total, double fps);

/* The index of frame i of n. */
int64_t burin_sample_index(
        struct burin_frame_sampling sampling, int64_t i, int64_t n, int64_t total);

#endif
