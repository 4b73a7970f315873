#include "runtime/plan/knobs.h"

#include "runtime/plan/sketch.h"

#include <stdio.h>

/* A plan and a request call a number by the same name: an int or an int64_t. */
#define AT(name)                                                                           \
    offsetof(struct burin_plan, name), offsetof(struct burin_plan_request, name),          \
            sizeof(((struct burin_plan *)NULL)->name) == sizeof(int64_t)

const struct burin_knob_row burin_knobs[BURIN_N_KNOBS] = {
    [BURIN_KNOB_CONTEXT] = { "--ctx-size", AT(n_ctx), 1, 1.0 },
    /* Prompts take longer, and that is all. */
    [BURIN_KNOB_BATCH] = { "--batch-size", AT(n_batch), 1, 0.6 },
    [BURIN_KNOB_PARALLEL] = { "--parallel", AT(n_sequences), 1, 1.0 },
    [BURIN_KNOB_POOL] = { "--kv-tokens", AT(kv_tokens), 1, 1.0 },
    [BURIN_KNOB_POOL_BYTES] = { "--kv-bytes", 0,
                                offsetof(struct burin_plan_request, kv_bytes), true, 1,
                                1.0 },
    [BURIN_KNOB_DRAFT] = { "--draft", AT(n_draft), 0, 1.2 },
    [BURIN_KNOB_IMAGES] = { "--images", AT(n_images), 0, 1.2 },
    [BURIN_KNOB_FRAMES] = { "--video-frames", AT(n_frames), 0, 1.2 },
    [BURIN_KNOB_CLIPS] = { "--audio-clips", AT(n_clips), 0, 1.2 },
    [BURIN_KNOB_THREADS] = { "--threads", AT(n_threads), 1, 1.2 },
};

/* ---- One number ------------------------------------------------------------------------ */

static int64_t number_at(const void *numbers, size_t offset, bool wide)
{
    const void *at = (const char *)numbers + offset;
    return wide ? *(const int64_t *)at : *(const int *)at;
}

int64_t burin_knob_planned(const struct burin_plan *plan, enum burin_knob knob)
{
    if (knob == BURIN_KNOB_POOL_BYTES)
        return burin_plan_owner_bytes(plan, "kv");
    return number_at(plan, burin_knobs[knob].planned, burin_knobs[knob].wide);
}

int64_t burin_knob_asked(const struct burin_plan_request *request, enum burin_knob knob)
{
    return number_at(request, burin_knobs[knob].asked, burin_knobs[knob].wide);
}

int64_t burin_knob_given(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        enum burin_knob knob)
{
    const int64_t asked = burin_knob_asked(request, knob);
    return asked > 0 ? asked : burin_knob_planned(plan, knob);
}

struct burin_text24 burin_knob_text(enum burin_knob knob, int64_t value)
{
    struct burin_text24 text;
    if (knob == BURIN_KNOB_POOL_BYTES)
        return burin_exact_bytes(value);
    snprintf(text.text, sizeof text.text, "%lld", (long long)value);
    return text;
}

void burin_knob_turn(
        struct burin_plan_request *request, enum burin_knob knob, int64_t value)
{
    void *at = (char *)request + burin_knobs[knob].asked;
    if (burin_knobs[knob].wide)
        *(int64_t *)at = value;
    else
        *(int *)at = (int)value;
    request->images_given |= knob == BURIN_KNOB_IMAGES;
}

bool burin_knob_may_turn(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        enum burin_knob knob)
{
    return burin_knob_planned(plan, knob) > burin_knobs[knob].least &&
           (knob != BURIN_KNOB_IMAGES || !request->largest_picture) && /* on their way */
           (knob != BURIN_KNOB_POOL || request->kv_tokens) &&
           (knob != BURIN_KNOB_POOL_BYTES || request->kv_bytes) &&
           (knob != BURIN_KNOB_THREADS || !plan->family->sm); /* no memory of a GPU */
}

/* ---- Searches -------------------------------------------------------------------------- */

static bool fits_with(
        const struct burin_plan_request *request, enum burin_knob knob, int64_t value)
{
    struct burin_plan_request other = *request;
    burin_knob_turn(&other, knob, value);
    return burin_plan_sketch_fits(&other);
}

/* The largest multiple of `step` from `least` to `most` that fits, -1 for none. Totals grow
 * with each of the numbers, so halving the interval finds it. */
static int64_t largest_that_fits(
        const struct burin_plan_request *request,
        enum burin_knob knob,
        int64_t step,
        int64_t least,
        int64_t most)
{
    int64_t known = (least + step - 1) / step;
    int64_t too_large = most / step + 1;
    if (known >= too_large || !fits_with(request, knob, known * step))
        return -1;
    while (too_large - known > 1) {
        const int64_t middle = known + (too_large - known) / 2;
        if (fits_with(request, knob, middle * step))
            known = middle;
        else
            too_large = middle;
    }
    return known * step;
}

struct burin_plan_request burin_plan_hold(
        const struct burin_plan *plan, const struct burin_plan_request *request)
{
    struct burin_plan_request held = *request;
    held.n_sequences = plan->n_sequences;
    return held;
}

int64_t burin_knob_least(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        enum burin_knob knob)
{
    struct burin_plan_request other = *request;
    struct burin_plan sketch;
    int64_t least = burin_knob_planned(plan, knob);
    int64_t below = burin_knobs[knob].least - 1;
    while (least - below > 1) {
        const int64_t middle = below + (least - below) / 2;
        burin_knob_turn(&other, knob, middle);
        if (burin_plan_sketch(&sketch, &other, false, NULL))
            below = middle;
        else
            least = middle;
    }
    return least;
}

int64_t burin_knob_lower(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        enum burin_knob knob,
        int64_t least,
        int64_t most)
{
    const bool tokens = knob == BURIN_KNOB_CONTEXT || knob == BURIN_KNOB_POOL;
    const int64_t step = tokens                          ? burin_plan_page_tokens(plan)
                         : knob == BURIN_KNOB_BATCH      ? 32
                         : knob == BURIN_KNOB_POOL_BYTES ? 1 << 20
                                                         : 1;
    const int64_t first = (least + step - 1) / step * step;
    const int64_t whole = largest_that_fits(request, knob, step, first, most);
    if (whole >= 0)
        return whole;
    return largest_that_fits(request, knob, 1, least, first - 1 < most ? first - 1 : most);
}

void burin_knob_raise(
        const struct burin_plan *plan,
        struct burin_plan_request *request,
        enum burin_knob knob,
        int64_t most)
{
    const int64_t now = burin_knob_asked(request, knob);
    if (fits_with(request, knob, most))
        burin_knob_turn(request, knob, most);
    else if (now < most)
        burin_knob_turn(
                request, knob, burin_knob_lower(plan, request, knob, now, most - 1));
}

/* ---- What else would fit --------------------------------------------------------------- */

/* The largest that fits of a number: what is planned or more; where that does not fit,
 * anything that makes a plan. 0 for nothing. */
static int largest_of(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        enum burin_knob knob,
        int64_t step,
        int64_t most)
{
    const int64_t now = burin_knob_planned(plan, knob);
    if (now <= most && fits_with(request, knob, most))
        return (int)most;
    const struct burin_plan_request held = burin_plan_hold(plan, request);
    const int64_t least = plan->fits ? now : burin_knob_least(plan, &held, knob);
    int64_t found = largest_that_fits(request, knob, step, least, most);
    if (found < 0)
        found = plan->fits ? now : largest_that_fits(request, knob, 1, least, most);
    return found > 0 ? (int)found : 0;
}

void burin_plan_find_largest(
        struct burin_plan *plan, const struct burin_plan_request *request)
{
    /* What a plan that fits has found for itself is held. */
    struct burin_plan_request held = *request;
    if (plan->fits) {
        held.n_sequences = plan->n_sequences;
        held.n_ctx = plan->n_ctx;
    }
    const int64_t page = burin_plan_page_tokens(plan);
    const int64_t n_batch = request->n_batch ? request->n_batch : BURIN_DEFAULT_BATCH;
    const int64_t all =
            (int64_t)plan->n_ctx * plan->n_sequences; /* there are no more tokens */
    const int64_t steps = all > plan->n_batch ? all : plan->n_batch;
    plan->longest_context =
            largest_of(plan, &held, BURIN_KNOB_CONTEXT, page, plan->model->n_ctx);
    plan->most_sequences =
            largest_of(plan, &held, BURIN_KNOB_PARALLEL, 1, n_batch / (plan->n_draft + 1));
    plan->largest_batch = largest_of(
            plan, &held, BURIN_KNOB_BATCH, 1,
            steps < BURIN_MAX_BATCH ? steps : BURIN_MAX_BATCH);

    /* Sequences go in powers of two, and what each keeps is lost to pages. */
    struct burin_plan fewer;
    held.n_sequences = plan->n_sequences / 2;
    if (plan->fits && plan->family->sm && !request->n_sequences && held.n_sequences &&
        !burin_plan_sketch(&fewer, &held, false, NULL) && fewer.fits &&
        fewer.kv_tokens > plan->kv_tokens + plan->kv_tokens / 20) {
        plan->fewer_sequences = fewer.n_sequences;
        plan->fewer_kv_tokens = fewer.kv_tokens;
    }
}
