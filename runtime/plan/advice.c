/* What else would fit, and the one change that mends a plan that does not. Each is found by
 * planning it: nothing is said that has not been tried. */
#include "runtime/plan/sketch.h"

#include "runtime/base/put.h"
#include "runtime/base/units.h"
#include "runtime/plan/runs.h"

#include <stdio.h>
#include <string.h>

/* Numbers that the user may turn down. */
enum knob {
    CONTEXT,
    BATCH,
    PARALLEL,
    POOL,
    DRAFT,
    IMAGES,
    FRAMES,
    CLIPS,
    THREADS,
    N_KNOBS
};

static const struct {
    const char *option;
    int least;   /* below it nothing is left of what the option is for */
    double pain; /* of losing a share of it, against the same share of the context */
} knobs[N_KNOBS] = {
    [CONTEXT] = { "--ctx-size", 1, 1.0 },
    [BATCH] = { "--batch-size", 1, 0.6 }, /* prompts take longer, and that is all */
    [PARALLEL] = { "--parallel", 1, 1.0 },
    [POOL] = { "--kv-tokens", 1, 1.0 },
    [DRAFT] = { "--draft", 0, 1.2 },
    [IMAGES] = { "--images", 0, 1.2 },
    [FRAMES] = { "--video-frames", 0, 1.2 },
    [CLIPS] = { "--audio-clips", 0, 1.2 },
    [THREADS] = { "--threads", 1, 1.2 },
};

static int64_t value_of(const struct burin_plan *plan, enum knob knob)
{
    switch (knob) {
    case CONTEXT:
        return plan->n_ctx;
    case BATCH:
        return plan->n_batch;
    case PARALLEL:
        return plan->n_sequences;
    case POOL:
        return plan->kv_tokens;
    case DRAFT:
        return plan->n_draft;
    case IMAGES:
        return plan->n_images;
    case FRAMES:
        return plan->n_frames;
    case CLIPS:
        return plan->n_clips;
    case THREADS:
        return plan->family->sm ? 0 : plan->n_threads;
    case N_KNOBS:
        break;
    }
    return 0;
}

static void turn(struct burin_plan_request *request, enum knob knob, int64_t value)
{
    const int n = (int)value;
    switch (knob) {
    case CONTEXT:
        request->n_ctx = n;
        break;
    case BATCH:
        request->n_batch = n;
        break;
    case PARALLEL:
        request->n_sequences = n;
        break;
    case POOL:
        request->kv_tokens = value;
        request->kv_bytes = 0;
        break;
    case DRAFT:
        request->n_draft = n;
        break;
    case IMAGES:
        request->images_given = true;
        request->n_images = n;
        break;
    case FRAMES:
        request->n_frames = n;
        break;
    case CLIPS:
        request->n_clips = n;
        break;
    case THREADS:
        request->n_threads = n;
        break;
    case N_KNOBS:
        break;
    }
}

/* What a request that turn() has been at asks for. */
static int64_t asked_of(const struct burin_plan_request *request, enum knob knob)
{
    const int64_t values[N_KNOBS] = {
        [CONTEXT] = request->n_ctx,        [BATCH] = request->n_batch,
        [PARALLEL] = request->n_sequences, [POOL] = request->kv_tokens,
        [DRAFT] = request->n_draft,        [IMAGES] = request->n_images,
        [FRAMES] = request->n_frames,      [CLIPS] = request->n_clips,
        [THREADS] = request->n_threads,
    };
    return values[knob];
}

static bool fits(const struct burin_plan_request *request)
{
    struct burin_plan plan;
    return !burin_plan_sketch(&plan, request, false, NULL) && plan.fits;
}

static bool fits_with(
        const struct burin_plan_request *request, enum knob knob, int64_t value)
{
    struct burin_plan_request other = *request;
    turn(&other, knob, value);
    return fits(&other);
}

/* The largest multiple of `step` from `least` to `most` that fits, -1 for none. Totals grow
 * with each of the numbers, so halving the interval finds it. */
static int64_t largest_that_fits(
        const struct burin_plan_request *request,
        enum knob knob,
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

/* The least of a number that makes a plan at all, whatever the memory, beside the others that
 * are asked for; `now` makes one. */
static int64_t least_of(
        const struct burin_plan_request *request, enum knob knob, int64_t now)
{
    int64_t least = now;
    int64_t below = knobs[knob].least - 1;
    while (least - below > 1) {
        const int64_t middle = below + (least - below) / 2;
        struct burin_plan_request other = *request;
        struct burin_plan plan;
        turn(&other, knob, middle);
        if (burin_plan_sketch(&plan, &other, false, NULL))
            below = middle;
        else
            least = middle;
    }
    return least;
}

/* With the number of sequences that is planned: left to its default, what makes a plan of many
 * short ones might make none of a single longer one. */
static struct burin_plan_request held_to(
        const struct burin_plan *plan, const struct burin_plan_request *request)
{
    struct burin_plan_request held = *request;
    held.n_sequences = plan->n_sequences;
    return held;
}

/* The largest from `least` to `most` that fits: in whole steps where that leaves something,
 * else to the unit. -1 for none. */
static int64_t lower(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        enum knob knob,
        int64_t least,
        int64_t most)
{
    const int64_t page = plan->kv ? plan->kv->page_tokens : 1;
    const int64_t step = knob == CONTEXT || knob == POOL ? page : knob == BATCH ? 32 : 1;
    const int64_t first = (least + step - 1) / step * step;
    const int64_t whole = largest_that_fits(request, knob, step, first, most);
    if (whole >= 0)
        return whole;
    return largest_that_fits(request, knob, 1, least, first - 1 < most ? first - 1 : most);
}

/* Whether there is something of a number to give up. */
static bool may_turn(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        enum knob knob)
{
    return value_of(plan, knob) > knobs[knob].least &&
           (knob != POOL || burin_plan_pool_given(plan, request));
}

/* ---- One change ------------------------------------------------------------------------ */

/* The best so far, and how much it hurts. */
struct advice {
    bool found;
    double pain;
    char text[BURIN_ADVICE_TEXT];
};

static void offer(struct advice *best, double pain, const char *text)
{
    if (best->found && pain >= best->pain)
        return;
    best->found = true;
    best->pain = pain;
    snprintf(best->text, sizeof best->text, "Smallest change: %s.", text);
}

static void offer_numbers(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct advice *best)
{
    const struct burin_plan_request held = held_to(plan, request);
    for (enum knob knob = 0; knob < N_KNOBS; knob++) {
        const int64_t now = value_of(plan, knob);
        if (!may_turn(plan, request, knob))
            continue;
        const int64_t value =
                lower(plan, request, knob, least_of(&held, knob, now), now - 1);
        if (value < 0)
            continue;
        char text[96];
        snprintf(
                text, sizeof text, "%s %lld in place of %lld", knobs[knob].option,
                (long long)value, (long long)now);
        offer(best, knobs[knob].pain * (double)(now - value) / (double)now, text);
    }
}

/* Whether keys and values of a dtype can be run: tables that nothing runs say how any would
 * lie. */
static bool has_kernels(const struct burin_plan *plan, int kv)
{
    for (int p = 0; p < plan->family->n_programs; p++) {
        const struct burin_program *program = &plan->family->programs[p];
        bool any = false;
        for (int i = 0; i < plan->family->n_kv; i++)
            any |= burin_program_runs(program, i);
        if (plan->programs[p].active && any && !burin_program_runs(program, kv))
            return false;
    }
    return true;
}

static void offer_kv_dtypes(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct advice *best)
{
    for (int i = 0; i < plan->family->n_kv; i++) {
        const struct burin_kv_layout *kv = &plan->family->kv[i];
        struct burin_plan_request other = *request;
        other.kv_dtype_given = true;
        other.kv_dtype = kv->dtype;
        if (kv->bytes_per_token >= plan->kv->bytes_per_token || !has_kernels(plan, i) ||
            !fits(&other))
            continue;
        char text[96];
        snprintf(
                text, sizeof text, "--kv-cache-dtype %s in place of %s",
                burin_dtype_name(kv->dtype), burin_dtype_name(plan->kv->dtype));
        /* The default loses nothing that anybody counted on; else the widest. */
        offer(best, i == 0 ? 0 : 0.4 + 0.001 * i, text);
    }
}

/* A program that is named would keep its graphs. */
static const char *none_text(const struct burin_plan_request *request)
{
    return request->graphs.n ? "--graphs none in place of those" : "--graphs none";
}

static void offer_graphs(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct advice *best)
{
    static const int paddings[] = { 50, 75, 90 };
    const int now = request->padding_given ? request->graph_padding : BURIN_GRAPH_PADDING;
    struct burin_plan_request other = *request;
    if (!burin_plan_graphs_bytes(plan) || plan->graphs_assumed)
        return;
    other.padding_given = true;
    for (int i = 0; i < 3; i++) {
        char text[96];
        other.graph_padding = paddings[i];
        if (paddings[i] <= now || !fits(&other))
            continue;
        snprintf(text, sizeof text, "--graph-padding %d in place of %d", paddings[i], now);
        offer(best, 0.25 + 0.15 * i, text);
        break;
    }
    other = *request;
    other.graphs = (struct burin_graphs){ .none = true };
    if (fits(&other)) {
        char text[96];
        snprintf(
                text, sizeof text, "%s, every kernel launched by itself",
                none_text(request));
        offer(best, 1.3, text);
    }
}

/* Pictures of fewer soft tokens: the largest budgets left out. */
static void offer_budgets(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct advice *best)
{
    for (int p = 0; p < plan->family->n_programs; p++) {
        const struct burin_program *program = &plan->family->programs[p];
        const struct burin_ladder *ladder = &plan->programs[p].graphs;
        struct burin_plan_request other = *request;
        struct burin_graphs *graphs = &other.graphs;
        if (!plan->programs[p].active || !burin_is_encoder(program) ||
            strlen(program->name) >= sizeof graphs->named[0].program)
            continue;
        int at = 0;
        while (at < graphs->n && strcmp(graphs->named[at].program, program->name) != 0)
            at++;
        if (at == BURIN_MAX_PROGRAMS)
            continue;
        graphs->n = at == graphs->n ? at + 1 : graphs->n;
        snprintf(
                graphs->named[at].program, sizeof graphs->named[at].program, "%s",
                program->name);
        graphs->named[at].ladder = *ladder;
        while (--graphs->named[at].ladder.n > 0) {
            const struct burin_ladder *fewer = &graphs->named[at].ladder;
            if (!fits(&other))
                continue;
            char text[256] = "";
            struct burin_put put = { text, sizeof text, 0 };
            burin_put(&put, "--graphs %s=", program->name);
            for (int i = 0; i < fewer->n; i++)
                burin_put(&put, "%s%d", i ? "," : "", fewer->sizes[i]);
            burin_put(
                    &put, ", items of at most %d soft tokens", fewer->sizes[fewer->n - 1]);
            const double kept =
                    (double)fewer->sizes[fewer->n - 1] / ladder->sizes[ladder->n - 1];
            offer(best, 1.1 * (1 - kept), text);
            break;
        }
    }
}

/* ---- Several, or none ------------------------------------------------------------------- */

/* What is said of `other`, in place of what the request asks for: all numbers, or those that
 * are not planned anyway. `told` is the request that follows it. `limit` is the option that it
 * is made under already, or "". */
static void say_several(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        const char *limit,
        const struct burin_plan_request *other,
        const int64_t values[N_KNOBS],
        bool all,
        struct burin_plan_request *told)
{
    struct burin_put put = { plan->advice, sizeof plan->advice, 0 };
    if (limit[0])
        burin_put(&put, "No single option mends it. Together these do: %s", limit);
    else
        burin_put(
                &put, "Within %s no single option mends it. Together these do:",
                burin_human_bytes(plan->limit_bytes).text);
    *told = *request;
    if (plan->kv && other->kv_dtype_given && other->kv_dtype != plan->kv->dtype) {
        told->kv_dtype_given = true;
        told->kv_dtype = other->kv_dtype;
        burin_put(&put, " --kv-cache-dtype %s", burin_dtype_name(other->kv_dtype));
    }
    for (enum knob knob = 0; knob < N_KNOBS; knob++) {
        if (!may_turn(plan, request, knob) ||
            (!all && values[knob] == value_of(plan, knob)))
            continue;
        turn(told, knob, values[knob]);
        burin_put(&put, " %s %lld", knobs[knob].option, (long long)values[knob]);
    }
    if (other->graphs.none &&
        (!request->graphs.none || other->graphs.n < request->graphs.n)) {
        told->graphs = other->graphs;
        burin_put(&put, " %s", none_text(request));
    }
    burin_put(&put, ".");
}

/* Turn a number as large as it may be, up to `most`, in a request that fits. */
static int64_t raise_number(
        const struct burin_plan *plan,
        struct burin_plan_request *request,
        enum knob knob,
        int64_t most)
{
    int64_t value = asked_of(request, knob);
    if (fits_with(request, knob, most))
        value = most;
    else if (value < most)
        value = lower(plan, request, knob, value, most - 1);
    turn(request, knob, value);
    return value;
}

/* All at their smallest, and then each again as large as it may be: those come first that
 * matter most. A step and a pool that are large enough for all of them come before. */
static void advise_several(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        const char *limit,
        const struct burin_plan_request *smallest)
{
    /* Pictures may need a step that only several sequences fill: once more behind those. */
    static const enum knob order[] = { CONTEXT, DRAFT,  IMAGES, FRAMES, CLIPS,  PARALLEL,
                                       IMAGES,  FRAMES, BATCH,  POOL,   THREADS };
    struct burin_plan_request other = *smallest, more, held = held_to(plan, request);
    int64_t values[N_KNOBS];
    held.n_ctx = plan->n_ctx;
    if (may_turn(plan, request, POOL))
        raise_number(plan, &other, POOL, least_of(&held, POOL, plan->kv_tokens));
    if (may_turn(plan, request, BATCH))
        raise_number(plan, &other, BATCH, least_of(&held, BATCH, plan->n_batch));
    more = other;
    more.kv_dtype_given = request->kv_dtype_given;
    more.kv_dtype = request->kv_dtype;
    if (fits(&more))
        other = more;
    more = other;
    more.graphs = request->graphs;
    if (fits(&more))
        other = more;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        const enum knob knob = order[i];
        values[knob] = value_of(plan, knob);
        if (may_turn(plan, request, knob))
            values[knob] = raise_number(plan, &other, knob, values[knob]);
    }
    say_several(plan, request, limit, &other, values, false, &more);
    if (!fits(&more)) /* a default that the others have moved */
        say_several(plan, request, limit, &other, values, true, &more);
}

static const struct burin_kv_layout *narrowest(const struct burin_plan *plan)
{
    const struct burin_kv_layout *all = plan->family->kv;
    const struct burin_kv_layout *least =
            has_kernels(plan, plan->kv_index) ? plan->kv : NULL;
    for (int i = 0; i < plan->family->n_kv; i++)
        if (has_kernels(plan, i) &&
            (!least || all[i].bytes_per_token < least->bytes_per_token))
            least = &all[i];
    return least ? least : plan->kv;
}

/* Every number at the least that makes a plan, pictures and drafts first: they set the least of
 * others. What --assume tells of graphs stays true of those that it was told of. */
static struct burin_plan_request smallest_of(
        const struct burin_plan *plan, const struct burin_plan_request *request)
{
    static const enum knob order[] = { DRAFT,    IMAGES, FRAMES,  CLIPS, THREADS,
                                       PARALLEL, BATCH,  CONTEXT, POOL };
    struct burin_plan_request smallest = held_to(plan, request);
    if (!plan->graphs_assumed)
        smallest.graphs = (struct burin_graphs){ .none = true };
    if (plan->kv) {
        smallest.kv_dtype_given = true;
        smallest.kv_dtype = narrowest(plan)->dtype;
    }
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (may_turn(plan, request, order[i]))
            turn(&smallest, order[i],
                 least_of(&smallest, order[i], value_of(plan, order[i])));
    return smallest;
}

/* The weights alone are too large: the recipe that would do, in the bits that the report's first
 * line counts, and the options it was found under. */
static void advise_recipe(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        const struct burin_plan *least)
{
    const int64_t weights = burin_plan_owner_bytes(least, "weights");
    const int64_t room = plan->limit_bytes - (least->total_bytes - weights);
    const double elements = (double)plan->model->n_elements;
    const double have =
            elements > 0 ? 8.0 * (double)plan->family->weights_bytes / elements : 0;
    const double bits = weights ? have * (double)room / (double)weights : 0;
    struct burin_put put = { plan->advice, sizeof plan->advice, 0 };
    if (bits < 2) {
        burin_put(
                &put,
                "No option mends it: the least this model runs in is %s. A smaller variant "
                "(gen list) may fit.",
                burin_human_bytes(least->total_bytes).text);
        return;
    }
    burin_put(
            &put,
            "No option mends it. Smallest change: a recipe of at most %.2f bits an element "
            "(gen --quant), the weights have %.2f; or a smaller variant. That is with",
            bits, have);
    for (enum knob knob = 0; knob < N_KNOBS; knob++)
        if (may_turn(plan, request, knob))
            burin_put(
                    &put, " %s %lld", knobs[knob].option, (long long)value_of(least, knob));
    if (plan->family->sm && !plan->graphs_assumed)
        burin_put(&put, " %s", none_text(request));
    if (least->kv != plan->kv)
        burin_put(&put, " --kv-cache-dtype %s", burin_dtype_name(least->kv->dtype));
    burin_put(&put, ".");
}

/* More of the card than the limit grants. False where that mends nothing. */
static bool advise_limit(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        const struct burin_plan_request *smallest)
{
    struct burin_plan_request loose;
    char option[64];
    if (burin_plan_loosen(plan, request, false, &loose, option, sizeof option)) {
        char now[32];
        if (request->limit == BURIN_LIMIT_FRACTION)
            snprintf(now, sizeof now, "%g", request->limit_fraction);
        else
            snprintf(
                    now, sizeof now, "%s",
                    burin_human_bytes(
                            request->limit == BURIN_LIMIT_BYTES
                                    ? plan->limit_bytes
                                    : plan->card.available_bytes - plan->limit_bytes)
                            .text);
        snprintf(
                plan->advice, sizeof plan->advice, "Smallest change: %s in place of %s%s.",
                option, now,
                plan->card.unified ? ", which this machine may need to go on" : "");
        return true;
    }
    struct burin_plan_request least;
    if (!burin_plan_loosen(plan, smallest, true, &least, option, sizeof option))
        return false;
    loose = *request;
    loose.limit = least.limit;
    loose.limit_bytes = least.limit_bytes;
    loose.limit_fraction = least.limit_fraction;
    advise_several(plan, &loose, option, &least);
    return true;
}

/* No option by itself: all of them at their smallest; then more of the card, by itself or
 * beside them; or what is left for the weights. */
static enum burin_status advise_all(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err)
{
    const struct burin_plan_request smallest = smallest_of(plan, request);
    struct burin_plan least;
    const enum burin_status status = burin_plan_sketch(&least, &smallest, false, err);
    if (status)
        return status;
    if (least.fits)
        advise_several(plan, request, "", &smallest);
    else if (!advise_limit(plan, request, &smallest))
        advise_recipe(plan, request, &least);
    return BURIN_OK;
}

/* The largest that fits of a number: what is planned or more; where that does not fit, anything
 * that makes a plan. 0 for nothing. */
static int largest_of(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        enum knob knob,
        int64_t step,
        int64_t most)
{
    const int64_t now = value_of(plan, knob);
    if (now <= most && fits_with(request, knob, most))
        return (int)most;
    const struct burin_plan_request held = held_to(plan, request);
    const int64_t least = plan->fits ? now : least_of(&held, knob, now);
    int64_t found = largest_that_fits(request, knob, step, least, most);
    if (found < 0)
        found = plan->fits ? now : largest_that_fits(request, knob, 1, least, most);
    return found > 0 ? (int)found : 0;
}

/* What else would fit: one number larger, the others as planned. What a plan that fits has
 * found for itself is held. */
static void find_largest(struct burin_plan *plan, const struct burin_plan_request *request)
{
    struct burin_plan_request held = *request;
    if (plan->fits) {
        held.n_sequences = plan->n_sequences;
        held.n_ctx = plan->n_ctx;
    }
    const int64_t page = plan->kv ? plan->kv->page_tokens : 1;
    const int64_t n_batch = request->n_batch ? request->n_batch : BURIN_DEFAULT_BATCH;
    const int64_t all =
            (int64_t)plan->n_ctx * plan->n_sequences; /* there are no more tokens */
    const int64_t steps = all > plan->n_batch ? all : plan->n_batch;
    plan->longest_context = largest_of(plan, &held, CONTEXT, page, plan->model->n_ctx);
    plan->most_sequences =
            largest_of(plan, &held, PARALLEL, 1, n_batch / (plan->n_draft + 1));
    plan->largest_batch = largest_of(
            plan, &held, BATCH, 1, steps < BURIN_MAX_BATCH ? steps : BURIN_MAX_BATCH);

    /* The number of sequences goes in powers of two, and what each keeps is lost to pages. */
    struct burin_plan fewer;
    held.n_sequences = plan->n_sequences / 2;
    if (plan->fits && plan->family->sm && !request->n_sequences && held.n_sequences &&
        !burin_plan_sketch(&fewer, &held, false, NULL) && fewer.fits &&
        fewer.kv_tokens > plan->kv_tokens + plan->kv_tokens / 20) {
        plan->fewer_sequences = fewer.n_sequences;
        plan->fewer_kv_tokens = fewer.kv_tokens;
    }
}

enum burin_status burin_plan_advise(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err)
{
    find_largest(plan, request);
    if (plan->fits)
        return BURIN_OK;

    struct advice best = { 0 };
    offer_numbers(plan, request, &best);
    if (plan->kv)
        offer_kv_dtypes(plan, request, &best);
    if (plan->family->sm) {
        offer_graphs(plan, request, &best);
        offer_budgets(plan, request, &best);
    }
    if (!best.found)
        return advise_all(plan, request, err);
    snprintf(plan->advice, sizeof plan->advice, "%s", best.text);
    return BURIN_OK;
}
