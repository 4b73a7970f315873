#include "runtime/engine/sampler.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* ---- Random numbers ---------------------------------------------------------------- */

uint64_t burin_random_seed(int64_t seed)
{
    if (seed >= 0)
        return (uint64_t)seed;
    uint64_t bits;
    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != (ssize_t)sizeof bits) {
        struct timespec now; /* right after boot: better a guessable seed than to wait */
        clock_gettime(CLOCK_REALTIME, &now);
        bits = (uint64_t)now.tv_sec * 1000000007u ^ (uint64_t)now.tv_nsec;
    }
    return bits >> 11;
}

void burin_random_init(uint64_t state[4], uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        seed += 0x9e3779b97f4a7c15u;
        uint64_t mixed = seed;
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
        state[i] = mixed ^ (mixed >> 31);
    }
}

static uint64_t rotate(uint64_t x, int by)
{
    return (x << by) | (x >> (64 - by));
}

double burin_random(uint64_t s[4])
{
    const uint64_t bits = rotate(s[1] * 5, 7) * 9;
    const uint64_t shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate(s[3], 45);
    return (double)(bits >> 11) * 0x1p-53;
}

/* ---- Rows of logits ---------------------------------------------------------------- */

/* A float's bits as an integer of the same order: NaNs lie above +Inf and below -Inf. Unlike
 * a maximum of floats, one of integers is a vector instruction without -ffast-math. */
static int32_t order_key(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits ^ ((bits >> 31) & INT32_MAX);
}

enum { BLOCK = 256, KEY_OF_INF = 0x7f800000, KEY_OF_MINUS_INF = -0x7f800000 - 1 };

struct range {
    int32_t high;
    int32_t low;
};

/* Of the keys of up to BLOCK logits. A constant count, so that the vectors need no rest. */
static struct range range_of(const float *logits, int n)
{
    int32_t high = INT32_MIN;
    int32_t low = INT32_MAX;
    if (n >= BLOCK) {
        for (int i = 0; i < BLOCK; i++) {
            const int32_t key = order_key(logits[i]);
            high = key > high ? key : high;
            low = key < low ? key : low;
        }
    } else {
        for (int i = 0; i < n; i++) {
            const int32_t key = order_key(logits[i]);
            high = key > high ? key : high;
            low = key < low ? key : low;
        }
    }
    return (struct range){ .high = high, .low = low };
}

struct peak {
    float logit; /* the largest; NaN where any is NaN or +Inf, or all are -Inf */
    int begin;   /* of the block in which it occurs first */
};

static struct peak find_peak(const float *logits, int n)
{
    struct peak peak = { .logit = NAN };
    struct range all = { .high = KEY_OF_MINUS_INF };

    for (int begin = 0; begin < n; begin += BLOCK) {
        const struct range r = range_of(logits + begin, n - begin);
        if (r.high > all.high) {
            all.high = r.high;
            peak.begin = begin;
        }
        all.low = r.low < all.low ? r.low : all.low;
    }
    if (all.high < KEY_OF_INF && all.low >= KEY_OF_MINUS_INF &&
        all.high > KEY_OF_MINUS_INF) {
        const int32_t bits = all.high ^ ((all.high >> 31) & INT32_MAX);
        memcpy(&peak.logit, &bits, sizeof bits);
    }
    return peak;
}

static float largest(const float *logits, int n)
{
    return find_peak(logits, n).logit;
}

int32_t burin_argmax(const float *logits, int n)
{
    const struct peak peak = find_peak(logits, n);
    int32_t i = peak.logit == 0 ? 0 : peak.begin; /* -0.0 == 0.0, its key is less */
    while (i < n && logits[i] != peak.logit)
        i++;
    return isnan(peak.logit) ? -1 : i;
}

double burin_log_prob(const float *logits, int n, int32_t target)
{
    const float most = largest(logits, n);
    double sum = 0;
    if (isnan(most))
        return NAN;
    for (int i = 0; i < n; i++)
        sum += (double)expf(logits[i] - most);
    return (double)logits[target] - (double)most - log(sum);
}

/* ---- Candidates -------------------------------------------------------------------- */

/* Whether a comes before b. */
static bool before(const struct burin_candidate *a, const struct burin_candidate *b)
{
    return a->logit > b->logit || (a->logit == b->logit && a->id < b->id);
}

static void swap(struct burin_candidate *a, struct burin_candidate *b)
{
    const struct burin_candidate kept = *a;
    *a = *b;
    *b = kept;
}

/* Restore a heap whose root is its last in order. */
static void sift_down(struct burin_candidate *heap, int n, int at)
{
    for (;;) {
        int last = at;
        for (int child = 2 * at + 1; child <= 2 * at + 2 && child < n; child++)
            if (before(&heap[last], &heap[child]))
                last = child;
        if (last == at)
            return;
        swap(&heap[at], &heap[last]);
        at = last;
    }
}

static int keep_all(struct burin_candidate *candidates, const float *logits, int n_vocab)
{
    int n = 0;
    for (int32_t id = 0; id < n_vocab; id++)
        if (logits[id] > -INFINITY)
            candidates[n++] = (struct burin_candidate){ .logit = logits[id], .id = id };
    return n;
}

/* The first k in order: what is better than the heap's root replaces it. Ids come in ascending
 * order, so an equal logit is never better. Blocks that have nothing better are passed over
 * at the speed of a maximum. */
static int keep_top_k(
        struct burin_candidate *candidates, const float *logits, int n_vocab, int k)
{
    int n = 0;
    int32_t id = 0;
    for (; id < n_vocab && n < k; id++)
        if (logits[id] > -INFINITY)
            candidates[n++] = (struct burin_candidate){ .logit = logits[id], .id = id };
    for (int at = n / 2 - 1; at >= 0; at--)
        sift_down(candidates, n, at);

    while (id < n_vocab) {
        const int32_t end = n_vocab - id < BLOCK ? n_vocab : id + BLOCK;
        if (range_of(logits + id, end - id).high <= order_key(candidates[0].logit)) {
            id = end;
            continue;
        }
        for (; id < end; id++)
            if (logits[id] > candidates[0].logit) {
                candidates[0] = (struct burin_candidate){ .logit = logits[id], .id = id };
                sift_down(candidates, n, 0);
            }
    }
    return n;
}

/* Weights at this temperature; returns their sum. */
static double weigh(struct burin_candidate *c, int n, float most, float temperature)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        c[i].weight = expf((c[i].logit - most) / temperature);
        sum += (double)c[i].weight;
    }
    return sum;
}

/* Move the middle one of first, middle and last to the end: the pivot. */
static void choose_pivot(struct burin_candidate *c, int begin, int end)
{
    const int middle = begin + (end - begin) / 2;
    const int last = end - 1;
    if (before(&c[middle], &c[begin]))
        swap(&c[middle], &c[begin]);
    if (before(&c[last], &c[begin]))
        swap(&c[last], &c[begin]);
    if (before(&c[middle], &c[last]))
        swap(&c[middle], &c[last]);
}

/* The fewest first ones whose weights reach `mass` come to the front; returns how many. As in
 * quickselect, only the part in which the border lies is divided further. */
static int keep_mass(struct burin_candidate *c, int n, double mass)
{
    int begin = 0;
    int end = n;
    while (end - begin > 1) {
        choose_pivot(c, begin, end);
        int border = begin;
        double sum = 0;
        for (int i = begin; i < end - 1; i++)
            if (before(&c[i], &c[end - 1])) {
                sum += (double)c[i].weight;
                swap(&c[i], &c[border++]);
            }
        swap(&c[border], &c[end - 1]);

        if (sum >= mass) {
            end = border;
        } else if (sum + (double)c[border].weight >= mass) {
            return border + 1;
        } else {
            mass -= sum + (double)c[border].weight;
            begin = border + 1;
        }
    }
    return end;
}

/* Leave out what is too light to be among the first that reach the share p: all below
 * (1 - p) / n of the sum make less than 1 - p of it together. Mostly some hundreds stay. */
static int keep_heavy(struct burin_candidate *c, int n, double p, double sum)
{
    const double least = (1 - p) * sum / n;
    int kept = 0;
    for (int i = 0; i < n; i++)
        if ((double)c[i].weight >= least)
            c[kept++] = c[i];
    return kept;
}

static int keep_min_p(struct burin_candidate *c, int n, float min_p)
{
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (c[i].weight >= min_p) /* the largest has weight 1 */
            c[kept++] = c[i];
    return kept;
}

enum burin_status burin_sampler_init(
        struct burin_sampler *sampler,
        struct burin_arena *arena,
        int n_vocab,
        struct burin_error *err)
{
    sampler->n_vocab = n_vocab;
    sampler->candidates = BURIN_TAKE(arena, (size_t)n_vocab, struct burin_candidate);
    if (!sampler->candidates)
        return burin_fail(
                err, BURIN_ENOMEM, "no memory for %d candidates of sampling", n_vocab);
    return BURIN_OK;
}

enum burin_status burin_sampling_check(
        const struct burin_sampling *sampling, struct burin_error *err)
{
    if (!(sampling->temperature >= 0 && sampling->temperature < INFINITY))
        return burin_fail(
                err, BURIN_EUSAGE, "temperature is %g, it must be 0 or more",
                (double)sampling->temperature);
    if (!(sampling->top_p > 0 && sampling->top_p <= 1))
        return burin_fail(
                err, BURIN_EUSAGE, "top_p is %g, it must be above 0 and at most 1",
                (double)sampling->top_p);
    if (!(sampling->min_p >= 0 && sampling->min_p <= 1))
        return burin_fail(
                err, BURIN_EUSAGE, "min_p is %g, it must be 0 to 1",
                (double)sampling->min_p);
    if (sampling->top_k < -1)
        return burin_fail(
                err, BURIN_EUSAGE, "top_k is %d, it must be 0 or more", sampling->top_k);
    if (sampling->seed < -1)
        return burin_fail(
                err, BURIN_EUSAGE,
                "seed is %lld, it must be 0 or more, or -1 for a random one",
                (long long)sampling->seed);
    return BURIN_OK;
}

/* One of the candidates, by their weights at this temperature. */
static int32_t draw_one(
        struct burin_candidate *c, int n, float most, float temperature, uint64_t random[4])
{
    double left = burin_random(random) * weigh(c, n, most, temperature);
    int drawn = 0;
    for (int i = 0; i < n; i++) {
        if (c[i].weight == 0)
            continue;
        drawn = i; /* rounding may leave a rest: it goes to the last that has a weight */
        left -= (double)c[i].weight;
        if (left < 0)
            break;
    }
    return c[drawn].id;
}

int32_t burin_sampler_draw(
        struct burin_sampler *sampler,
        const float *logits,
        const struct burin_sampling *sampling,
        uint64_t random[4])
{
    if (sampling->temperature == 0)
        return burin_argmax(logits, sampler->n_vocab);
    const float most = largest(logits, sampler->n_vocab);
    if (isnan(most))
        return -1;

    struct burin_candidate *c = sampler->candidates;
    int n = sampling->top_k > 0 ? keep_top_k(c, logits, sampler->n_vocab, sampling->top_k)
                                : keep_all(c, logits, sampler->n_vocab);
    if (sampling->top_p < 1 || sampling->min_p > 0) {
        const double sum = weigh(c, n, most, 1);
        if (sampling->top_p < 1) {
            n = keep_heavy(c, n, (double)sampling->top_p, sum);
            n = keep_mass(c, n, (double)sampling->top_p * sum);
        }
        if (sampling->min_p > 0)
            n = keep_min_p(c, n, sampling->min_p);
    }

    return draw_one(c, n, most, sampling->temperature, random);
}

/* ---- Of the largest alone ------------------------------------------------------------- */

bool burin_sampling_by_top(const struct burin_sampling *sampling)
{
    return sampling->temperature == 0 || sampling->top_p < 1 || sampling->min_p > 0 ||
           (sampling->top_k > 0 && sampling->top_k <= BURIN_TOP);
}

/* The fewest first ones, in order, that have the share p of `sum`; -1 where all have less. */
static int first_mass(const struct burin_candidate *c, int n, double p, double sum)
{
    double mass = 0;
    for (int i = 0; i < n; i++) {
        mass += (double)c[i].weight;
        if (mass >= p * sum)
            return i + 1;
    }
    return -1;
}

int32_t burin_sampler_draw_top(
        struct burin_sampler *sampler,
        const struct burin_top_logits *top,
        const struct burin_sampling *sampling,
        uint64_t random[4],
        bool *decided)
{
    struct burin_candidate *c = sampler->candidates;
    const int most_ids = sampler->n_vocab < BURIN_TOP ? sampler->n_vocab : BURIN_TOP;
    *decided = true;
    if (!isfinite(top->log_sum) || !isfinite(top->largest) || top->ids[0] < 0)
        return -1;
    if (sampling->temperature == 0)
        return top->ids[0];
    int n = 0;
    for (; n < most_ids && top->ids[n] >= 0 && top->logits[n] > -INFINITY; n++)
        c[n] = (struct burin_candidate){ .logit = top->logits[n], .id = top->ids[n] };
    bool all = n < most_ids || n == sampler->n_vocab; /* that can be drawn are here */
    if (sampling->top_k > 0 && sampling->top_k <= n) {
        n = sampling->top_k;
        all = true;
    }

    double sum = weigh(c, n, top->largest, 1);
    if (!all) /* of the whole row; no filter but top_k changes it */
        sum = exp((double)top->log_sum - (double)top->largest);
    if (sampling->top_k > BURIN_TOP && !all)
        *decided = false; /* its sum is that of the first top_k */
    if (sampling->top_p < 1 && *decided) {
        const int kept = first_mass(c, n, (double)sampling->top_p, sum);
        all |= kept > 0;
        n = kept > 0 ? kept : n;
    }
    if (sampling->min_p > 0) {
        const int kept = keep_min_p(c, n, sampling->min_p);
        all |= kept < n;
        n = kept;
    }
    *decided = *decided && all;
    return *decided ? draw_one(c, n, top->largest, sampling->temperature, random) : -1;
}
