/* runtime/weights/generation.h -- How a release's authors mean it to be sampled and what ends its
 * answers: generation_config.json beside the weights, or a GGUF file's keys (general.sampling.*,
 * tokenizer.ggml.*_token_id).
 *
 * Memory   A struct of the caller's; nothing is held.
 * Threads  One at a time. */
#ifndef BURIN_WEIGHTS_GENERATION_H
#define BURIN_WEIGHTS_GENERATION_H

#include "runtime/base/status.h"
#include "runtime/weights/checkpoint.h"

#include <stdbool.h>
#include <stdint.h>

enum { BURIN_GENERATION_STOPS = 8 };

struct burin_generation {
    int n_stops;
    int32_t stops[BURIN_GENERATION_STOPS];
    bool is_greedy;     /* do_sample is false */
    bool draws;         /* do_sample is true */
    double temperature; /* NaN where it is not said; so the others */
    double top_k;
    double top_p;
    double min_p;
};

extern const struct burin_generation burin_generation_unsaid;

/* Without file or keys nothing is said. BURIN_EFORMAT names the file and what is wrong. */
enum burin_status burin_generation_read(
        struct burin_generation *generation,
        const struct burin_checkpoint *checkpoint,
        struct burin_error *err);

/* The text of a generation_config.json, which is decoded in place. */
enum burin_status burin_generation_from_json(
        struct burin_generation *generation,
        char *text,
        size_t length,
        struct burin_error *err);

#endif
