/* runtime/engine/sampler.h -- From a row of logits to a token.
 *
 * Filters  top_k keeps the k largest, top_p the fewest largest that together have p of the
 *          probability (of what top_k left), min_p those of at least min_p times the largest.
 *          Among equal logits the smaller id comes first.
 * Cost     The vocabulary is never sorted: top_k is a heap of k, top_p a selection by mass,
 *          both linear in the vocabulary.
 * Bits     The same logits, parameters and random state give the same token anywhere.
 * Memory   A sampler's scratch comes from an arena at the start; drawing allocates nothing.
 * Threads  One at a time on a sampler. */
#ifndef BURIN_ENGINE_SAMPLER_H
#define BURIN_ENGINE_SAMPLER_H

#include "runtime/base/arena.h"
#include "runtime/base/status.h"
#include "runtime/burin.h"

#include <stdbool.h>
#include <stdint.h>

struct burin_candidate {
    float logit;
    float weight; /* probability, up to a factor that all share */
    int32_t id;
};

struct burin_sampler {
    int n_vocab;
    struct burin_candidate *candidates; /* n_vocab */
};

enum burin_status burin_sampler_init(
        struct burin_sampler *sampler,
        struct burin_arena *arena,
        int n_vocab,
        struct burin_error *err);

/* BURIN_EUSAGE names the parameter that makes no sense, and its range. */
enum burin_status burin_sampling_check(
        const struct burin_sampling *sampling, struct burin_error *err);

/* What a GPU leaves of a row of logits (gen/ops/top_logits.lua). It decides a draw that keeps none
 * but these, so that the row itself need not leave the device. */
enum { BURIN_TOP = 64, BURIN_TOP_WORDS = 2 * BURIN_TOP + 2 };
struct burin_top_logits {
    int32_t ids
            [BURIN_TOP]; /* the largest first, of equals the smaller id; -1: there are less */
    float logits[BURIN_TOP]; /* theirs */
    float largest;
    float log_sum; /* log sum e^x; no finite number where no token can be drawn */
};

/* Whether rows like this may do for such a draw at all: greedy, top_k up to BURIN_TOP, or a top_p or
 * min_p that may end within them. */
bool burin_sampling_by_top(const struct burin_sampling *sampling);

/* A token with the probability that burin_sampler_draw() gives it, or -1; *decided is false where the
 * whole row is needed, and `random` has been left alone. Candidates stand in another order here, so
 * the same number may draw another of them. */
int32_t burin_sampler_draw_top(
        struct burin_sampler *sampler,
        const struct burin_top_logits *top,
        const struct burin_sampling *sampling,
        uint64_t random[4],
        bool *decided);

/* A token, or -1 where logits are NaN or +Inf or all are -Inf. A token of -Inf is never
 * drawn. Greedy drawing leaves `random` alone, any other takes one number. */
int32_t burin_sampler_draw(
        struct burin_sampler *sampler,
        const float *logits,
        const struct burin_sampling *sampling,
        uint64_t random[4]);

/* The seed that a request's `seed` stands for: itself, or for -1 one from the system (below
 * 2^53, so that it can be given back as --seed and every reader of JSON keeps it). */
uint64_t burin_random_seed(int64_t seed);

/* xoshiro256** of Blackman and Vigna 2018, arXiv:1805.01407, its state filled by splitmix64
 * as they advise. burin_random() is uniform in [0, 1). */
void burin_random_init(uint64_t state[4], uint64_t seed);
double burin_random(uint64_t state[4]);

#endif
