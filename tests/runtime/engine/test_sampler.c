/* From a row of logits to a token. */
#include "runtime/engine/sampler.h"
#include "tests/support/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 120 };

static struct burin_arena arena;

static struct burin_sampler a_sampler(int n_vocab)
{
    struct burin_sampler sampler;
    assert_int_equal(burin_sampler_init(&sampler, &arena, n_vocab, NULL), BURIN_OK);
    return sampler;
}

/* Logits with ties, in an order that has nothing to do with ids. */
static void some_logits(float *logits, int n, unsigned seed)
{
    for (int i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        logits[i] = (float)(seed >> 22) / 100.0f - 5.0f; /* 1024 values */
    }
}

/* ---- The definition: sort everything, then cut ------------------------------------------ */

static const float *sorted_by;

static int by_logit(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a;
    const int32_t y = *(const int32_t *)b;
    if (sorted_by[x] != sorted_by[y])
        return sorted_by[x] > sorted_by[y] ? -1 : 1;
    return x - y;
}

/* Marks the ids that may be drawn; how many. */
static int allowed_by_definition(
        const float *logits, int n, const struct burin_sampling *s, bool *allowed)
{
    int32_t order[N];
    double weight[N];
    for (int i = 0; i < n; i++)
        order[i] = i;
    sorted_by = logits;
    qsort(order, (size_t)n, sizeof *order, by_logit);

    int kept = s->top_k > 0 && s->top_k < n ? s->top_k : n;
    double sum = 0;
    for (int i = 0; i < kept; i++) {
        weight[i] = exp((double)logits[order[i]] - (double)logits[order[0]]);
        sum += weight[i];
    }
    if (s->top_p < 1) {
        double mass = 0;
        int i = 0;
        while (i < kept && mass < (double)s->top_p * sum)
            mass += weight[i++];
        kept = i;
    }
    while (s->min_p > 0 && weight[kept - 1] < (double)s->min_p)
        kept--;
    memset(allowed, 0, (size_t)n * sizeof *allowed);
    for (int i = 0; i < kept; i++)
        allowed[order[i]] = true;
    return kept;
}

SPEC(what_is_drawn_is_what_sorting_and_cutting_would_leave)
{
    static const int top_ks[] = { 0, 1, 2, 7, 50, 119, 120, 1000 };
    static const float top_ps[] = { 1, 0.999f, 0.9f, 0.5f, 0.1f, 1e-9f };
    static const float min_ps[] = { 0, 0.02f, 0.3f, 1 };
    struct burin_sampler sampler = a_sampler(N);

    for (unsigned seed = 0; seed < 2; seed++)
        for (int k = 0; k < 8; k++)
            for (int p = 0; p < 6; p++)
                for (int m = 0; m < 4; m++) {
                    const struct burin_sampling sampling = {
                        .temperature = 30, /* nearly even, so that all of them come */
                        .top_k = top_ks[k],
                        .top_p = top_ps[p],
                        .min_p = min_ps[m],
                    };
                    float logits[N];
                    bool allowed[N];
                    bool drawn[N] = { false };
                    uint64_t random[4];
                    some_logits(logits, N, seed);
                    const int n = allowed_by_definition(logits, N, &sampling, allowed);
                    burin_random_init(random, seed);

                    for (int i = 0; i < 12 * n; i++)
                        drawn[burin_sampler_draw(&sampler, logits, &sampling, random)] =
                                true;

                    int n_drawn = 0;
                    for (int i = 0; i < N; i++) {
                        assert_false(drawn[i] && !allowed[i]);
                        n_drawn += drawn[i];
                    }
                    assert_true(n_drawn >= n - n / 50 - 1);
                }
    burin_arena_close(&arena);
}

SPEC(tokens_come_as_often_as_their_probability_says)
{
    enum { DRAWS = 200000 };
    static const float logits[5] = { 1.0f, -0.5f, 2.0f, -INFINITY, 0.0f };
    static const float temperatures[] = { 0.5f, 1, 2.5f };
    struct burin_sampler sampler = a_sampler(5);
    for (int t = 0; t < 3; t++) {
        const struct burin_sampling sampling = { .temperature = temperatures[t],
                                                 .top_p = 1 };
        int count[5] = { 0 };
        double sum = 0;
        uint64_t random[4];
        burin_random_init(random, 5);
        for (int i = 0; i < 5; i++)
            sum += exp((double)(logits[i] / temperatures[t]));

        for (int i = 0; i < DRAWS; i++)
            count[burin_sampler_draw(&sampler, logits, &sampling, random)]++;

        assert_int_equal(count[3], 0);
        for (int i = 0; i < 5; i++) {
            const double p = exp((double)(logits[i] / temperatures[t])) / sum;
            const double sigma = sqrt(p * (1 - p) * DRAWS);
            assert_true(fabs(count[i] - p * DRAWS) <= 4 * sigma + 1e-9);
        }
    }
    burin_arena_close(&arena);
}

SPEC(greedy_takes_the_first_of_the_largest_and_no_random_number)
{
    float logits[N];
    struct burin_sampler sampler = a_sampler(N);
    for (int at = 0; at < N; at++) {
        uint64_t random[4] = { 1, 2, 3, 4 };
        for (int i = 0; i < N; i++)
            logits[i] = i < at ? -3 : -2;
        assert_int_equal(burin_sampler_draw(&sampler, logits, &burin_greedy, random), at);
        assert_int_equal(random[0], 1);
    }
    burin_arena_close(&arena);
}

SPEC(a_row_with_one_nan_or_inf_or_only_minus_inf_is_never_drawn_from)
{
    static const struct burin_sampling warm = { .temperature = 1,
                                                .top_k = 5,
                                                .top_p = 0.9f };
    static const float strange[] = { NAN, -NAN, INFINITY };
    struct burin_sampler sampler = a_sampler(N);
    float logits[N];
    uint64_t random[4] = { 1, 2, 3, 4 };

    for (int at = 0; at < N; at++)
        for (int s = 0; s < 3; s++) {
            some_logits(logits, N, 1);
            logits[at] = strange[s];
            assert_int_equal(burin_sampler_draw(&sampler, logits, &warm, random), -1);
            assert_int_equal(
                    burin_sampler_draw(&sampler, logits, &burin_greedy, random), -1);
            assert_int_equal(burin_argmax(logits, N), -1);
            assert_true(isnan(burin_log_prob(logits, N, 0)));
        }
    for (int i = 0; i < N; i++)
        logits[i] = -INFINITY;
    assert_int_equal(burin_sampler_draw(&sampler, logits, &warm, random), -1);
    assert_int_equal(burin_sampler_draw(&sampler, logits, &burin_greedy, random), -1);

    logits[N - 1] = -1e30f; /* one is enough */
    assert_int_equal(burin_sampler_draw(&sampler, logits, &warm, random), N - 1);
    assert_int_equal(burin_sampler_draw(&sampler, logits, &burin_greedy, random), N - 1);
    burin_arena_close(&arena);
}

SPEC(log_prob_is_log_softmax)
{
    float logits[N];
    double sum = 0;
    some_logits(logits, N, 3);
    for (int i = 0; i < N; i++)
        sum += exp((double)logits[i]);

    for (int i = 0; i < N; i++)
        assert_true(
                fabs(burin_log_prob(logits, N, i) - ((double)logits[i] - log(sum))) < 1e-6);
}

SPEC(log_prob_of_large_logits_does_not_overflow)
{
    static const float logits[] = { 3e38f, 3e38f, -3e38f };
    assert_true(fabs(burin_log_prob(logits, 3, 1) + log(2)) < 1e-6);
}

SPEC(random_numbers_are_those_of_the_paper)
{
    /* xoshiro256** from state 1, 2, 3, 4: the first outputs of the authors' C code. */
    static const uint64_t right[] = { 11520u, 0u, 1509978240u, 1215971899390074240u };
    uint64_t numbers[4] = { 1, 2, 3, 4 };
    for (int i = 0; i < 4; i++)
        assert_true(burin_random(numbers) == (double)(right[i] >> 11) * 0x1p-53);
}

SPEC(seeds_are_kept_and_random_ones_can_be_given_back)
{
    assert_int_equal(burin_random_seed(0), 0);
    assert_int_equal(burin_random_seed(INT64_MAX), INT64_MAX);
    const uint64_t one = burin_random_seed(-1);
    const uint64_t two = burin_random_seed(-1);
    assert_true(one != two);
    for (int i = 0; i < 64; i++)
        assert_true(
                burin_random_seed(-1) < 1ull << 53); /* what --seed takes, and JSON keeps */
}

SPEC(parameters_that_make_no_sense_are_named)
{
    struct burin_error err = { 0 };
    static const struct {
        struct burin_sampling sampling;
        const char *message;
    } cases[] = {
        { { -1, 0, 1, 0, 0 }, "temperature is -1, it must be 0 or more" },
        { { NAN, 0, 1, 0, 0 }, "temperature is nan, it must be 0 or more" },
        { { INFINITY, 0, 1, 0, 0 }, "temperature is inf, it must be 0 or more" },
        { { 1, -2, 1, 0, 0 }, "top_k is -2, it must be 0 or more" },
        { { 1, 0, 0, 0, 0 }, "top_p is 0, it must be above 0 and at most 1" },
        { { 1, 0, 1.5f, 0, 0 }, "top_p is 1.5, it must be above 0 and at most 1" },
        { { 1, 0, 1, -0.5f, 0 }, "min_p is -0.5, it must be 0 to 1" },
        { { 1, 0, 1, 0, -2 }, "seed is -2, it must be 0 or more, or -1 for a random one" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(burin_sampling_check(&cases[i].sampling, &err), BURIN_EUSAGE);
        assert_string_equal(err.message, cases[i].message);
    }
    assert_int_equal(burin_sampling_check(&burin_greedy, NULL), BURIN_OK);
    assert_int_equal(
            burin_sampling_check(&(struct burin_sampling){ 0.7f, -1, 1, 1, -1 }, NULL),
            BURIN_OK);
}

/* ---- Of the largest alone ---------------------------------------------------------------- */

/* What a GPU would leave of a row. */
static struct burin_top_logits top_of(const float *logits, int n)
{
    struct burin_top_logits top;
    int32_t order[N];
    double sum = 0;
    for (int i = 0; i < n; i++) {
        order[i] = i;
        sum += exp((double)logits[i]);
    }
    sorted_by = logits;
    qsort(order, (size_t)n, sizeof *order, by_logit);
    for (int i = 0; i < BURIN_TOP; i++) {
        top.ids[i] = i < n ? order[i] : -1;
        top.logits[i] = i < n ? logits[order[i]] : 0;
    }
    top.largest = logits[order[0]];
    top.log_sum = (float)log(sum);
    return top;
}

SPEC(what_the_largest_decide_is_what_the_whole_row_would_leave)
{
    static const int top_ks[] = { 0, 1, 5, 64, 65, 100 };
    static const float top_ps[] = { 1.0f, 0.999f, 0.9f, 0.5f };
    static const float min_ps[] = { 0, 0.001f, 0.2f };
    struct burin_sampler sampler = a_sampler(N);
    int n_decided = 0, n_left = 0;
    for (unsigned seed = 1; seed <= 40; seed++)
        for (int i = 0; i < 6 * 4 * 3; i++) {
            const struct burin_sampling s = { .temperature = 0.8f,
                                              .top_k = top_ks[i % 6],
                                              .top_p = top_ps[i / 6 % 4],
                                              .min_p = min_ps[i / 24] };
            float logits[N];
            bool allowed[N], decided = false;
            uint64_t random[4], kept[4];
            some_logits(logits, N, seed);
            if (seed % 3 == 0) /* a flat row: its largest have little of it */
                for (int k = 0; k < N; k++)
                    logits[k] /= 50;
            const struct burin_top_logits top = top_of(logits, N);
            allowed_by_definition(logits, N, &s, allowed);
            burin_random_init(random, seed);
            memcpy(kept, random, sizeof kept);

            const int32_t token =
                    burin_sampler_draw_top(&sampler, &top, &s, random, &decided);

            if (decided)
                assert_true(token >= 0 && allowed[token]);
            else
                assert_memory_equal(random, kept, sizeof kept);
            assert_true(decided || !(s.top_k > 0 && s.top_k <= BURIN_TOP));
            assert_true(burin_sampling_by_top(&s) || !decided);
            n_decided += decided;
            n_left += !decided;
        }
    assert_true(n_decided > 1000 && n_left > 100);
}

SPEC(the_largest_come_as_often_as_their_probability_says)
{
    struct burin_sampler sampler = a_sampler(N);
    const struct burin_sampling s = { .temperature = 1, .top_k = 4, .top_p = 1 };
    float logits[N];
    int count[N] = { 0 };
    uint64_t random[4];
    bool decided;
    for (int i = 0; i < N; i++)
        logits[i] = -20;
    logits[7] = logf(4);
    logits[3] = logf(3);
    logits[90] = logf(2);
    logits[1] = logf(1);
    const struct burin_top_logits top = top_of(logits, N);
    burin_random_init(random, 5);
    for (int i = 0; i < 100000; i++)
        count[burin_sampler_draw_top(&sampler, &top, &s, random, &decided)]++;
    assert_in_range(count[7], 39300, 40700);
    assert_in_range(count[3], 29300, 30700);
    assert_in_range(count[90], 19300, 20700);
    assert_in_range(count[1], 9300, 10700);
}

SPEC(greedy_by_the_largest_is_greedy_and_no_number_draws_nothing)
{
    struct burin_sampler sampler = a_sampler(N);
    float logits[N];
    uint64_t random[4] = { 1, 2, 3, 4 };
    bool decided;
    some_logits(logits, N, 9);
    struct burin_top_logits top = top_of(logits, N);
    assert_int_equal(
            burin_sampler_draw_top(&sampler, &top, &burin_greedy, random, &decided),
            burin_argmax(logits, N));
    assert_true(decided && random[0] == 1);

    top.log_sum = NAN;
    assert_int_equal(
            burin_sampler_draw_top(&sampler, &top, &burin_greedy, random, &decided), -1);
    top.log_sum = INFINITY;
    assert_int_equal(
            burin_sampler_draw_top(&sampler, &top, &burin_greedy, random, &decided), -1);
    assert_true(decided);
}
