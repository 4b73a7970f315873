/* What mends a plan that does not fit, in words: one change, several, more of the card, a
 * recipe. Nothing is said that has not been tried. */
#include "runtime/plan/sketch.h"

#include "runtime/base/put.h"
#include "runtime/base/units.h"
#include "runtime/plan/knobs.h"
#include "runtime/plan/runs.h"

#include <stdio.h>
#include <string.h>

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

/* A size that was given, in few digits: 31.2GiB is no whole number of MiB. */
static struct burin_text24 given_bytes(int64_t bytes)
{
    const int64_t mib = 1 << 20;
    return bytes % mib ? burin_human_bytes(bytes) : burin_exact_bytes(bytes);
}

static void offer_numbers(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct advice *best)
{
    const struct burin_plan_request held = burin_plan_hold(plan, request);
    for (enum burin_knob knob = 0; knob < BURIN_N_KNOBS; knob++) {
        if (!burin_knob_may_turn(plan, request, knob))
            continue;
        const int64_t now = burin_knob_planned(plan, knob);
        const int64_t value = burin_knob_lower(
                plan, request, knob, burin_knob_least(plan, &held, knob), now - 1);
        if (value < 0)
            continue;
        const int64_t given = burin_knob_given(plan, request, knob);
        char text[96];
        snprintf(
                text, sizeof text, "%s %s in place of %s", burin_knobs[knob].option,
                burin_knob_text(knob, value).text,
                knob == BURIN_KNOB_POOL_BYTES ? given_bytes(given).text
                                              : burin_knob_text(knob, given).text);
        offer(best, burin_knobs[knob].pain * (double)(now - value) / (double)now, text);
    }
}

static bool has_kernels(const struct burin_plan *plan, int kv)
{
    for (int p = 0; p < plan->family->n_programs; p++)
        if (burin_plan_lacks_kv(plan, p, kv))
            return false;
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
            !burin_plan_sketch_fits(&other))
            continue;
        char text[96];
        snprintf(
                text, sizeof text, "--kv-cache-dtype %s in place of %s",
                burin_dtype_name(kv->dtype), burin_dtype_name(plan->kv->dtype));
        /* The default loses nothing that anybody counted on; else the widest. */
        offer(best, i == 0 ? 0 : 0.4 + 0.001 * i, text);
    }
}

/* Beside a list it would be refused. */
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
        if (paddings[i] <= now || !burin_plan_sketch_fits(&other))
            continue;
        snprintf(text, sizeof text, "--graph-padding %d in place of %d", paddings[i], now);
        offer(best, 0.25 + 0.15 * i, text);
        break;
    }
    other = *request;
    other.graphs = (struct burin_graphs){ .none = true };
    if (burin_plan_sketch_fits(&other)) {
        char text[96];
        snprintf(
                text, sizeof text, "%s, every kernel launched by itself",
                none_text(request));
        offer(best, 1.3, text);
    }
}

/* Pictures of fewer soft tokens: the largest budgets left out, but for those that a picture on its
 * way needs. A list is short enough to be said as a whole. */
static void offer_budgets(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct advice *best)
{
    enum { SAID = 24 };
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
        const bool given = at < graphs->n;
        graphs->n = at == graphs->n ? at + 1 : graphs->n;
        snprintf(
                graphs->named[at].program, sizeof graphs->named[at].program, "%s",
                program->name);
        graphs->named[at].ladder = *ladder;
        while (--graphs->named[at].ladder.n > 0) {
            const struct burin_ladder *fewer = &graphs->named[at].ladder;
            if (fewer->n > SAID || fewer->sizes[fewer->n - 1] < plan->largest_picture ||
                !burin_plan_sketch_fits(&other))
                continue;
            char text[384] = "";
            struct burin_put put = { text, sizeof text, 0 };
            burin_put(&put, "--graphs %s=", program->name);
            for (int i = 0; i < fewer->n; i++)
                burin_put(&put, "%s%d", i ? "," : "", fewer->sizes[i]);
            if (given) /* beside it, it would be refused */
                burin_put(
                        &put, " in place of %s=%s", program->name,
                        burin_ladder_end(ladder).text);
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
 * are not planned anyway. Whether the request that follows it fits. `limit` is the option that
 * it is made under already, or "". */
static bool say_several(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        const char *limit,
        const struct burin_plan_request *other,
        bool all)
{
    struct burin_put put = { plan->advice, sizeof plan->advice, 0 };
    struct burin_plan_request told = *request;
    if (limit[0])
        burin_put(&put, "No single option mends it. Together these do: %s", limit);
    else
        burin_put(
                &put, "Within %s no single option mends it. Together these do:",
                burin_human_bytes(plan->limit_bytes).text);
    if (plan->kv && other->kv_dtype_given && other->kv_dtype != plan->kv->dtype) {
        told.kv_dtype_given = true;
        told.kv_dtype = other->kv_dtype;
        burin_put(&put, " --kv-cache-dtype %s", burin_dtype_name(other->kv_dtype));
    }
    for (enum burin_knob knob = 0; knob < BURIN_N_KNOBS; knob++) {
        const int64_t value = burin_knob_asked(other, knob);
        if (!burin_knob_may_turn(plan, request, knob) ||
            (!all && value == burin_knob_planned(plan, knob)))
            continue;
        burin_knob_turn(&told, knob, value);
        burin_put(
                &put, " %s %s", burin_knobs[knob].option,
                burin_knob_text(knob, value).text);
    }
    if (other->graphs.none && !request->graphs.none) {
        told.graphs = other->graphs;
        burin_put(&put, " %s", none_text(request));
    }
    burin_put(&put, ".");
    return burin_plan_sketch_fits(&told);
}

/* All at their smallest, and then each again as large as it may be: those come first that
 * matter most. A step and a pool that are large enough for all of them come before. */
static void advise_several(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        const char *limit,
        const struct burin_plan_request *smallest)
{
    static const enum burin_knob first[] = { BURIN_KNOB_POOL, BURIN_KNOB_POOL_BYTES,
                                             BURIN_KNOB_BATCH };
    static const enum burin_knob order[] = {
        BURIN_KNOB_CONTEXT,    BURIN_KNOB_DRAFT,    BURIN_KNOB_IMAGES, BURIN_KNOB_FRAMES,
        BURIN_KNOB_CLIPS,      BURIN_KNOB_PARALLEL, BURIN_KNOB_BATCH,  BURIN_KNOB_POOL,
        BURIN_KNOB_POOL_BYTES, BURIN_KNOB_THREADS,
    };
    struct burin_plan_request other = *smallest, more;
    struct burin_plan_request held = burin_plan_hold(plan, request);
    held.n_ctx = plan->n_ctx;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        if (burin_knob_may_turn(plan, request, first[i]))
            burin_knob_raise(
                    plan, &other, first[i], burin_knob_least(plan, &held, first[i]));
    more = other;
    more.kv_dtype_given = request->kv_dtype_given;
    more.kv_dtype = request->kv_dtype;
    if (burin_plan_sketch_fits(&more))
        other = more;
    more = other;
    more.graphs = request->graphs;
    if (burin_plan_sketch_fits(&more))
        other = more;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (burin_knob_may_turn(plan, request, order[i]))
            burin_knob_raise(plan, &other, order[i], burin_knob_planned(plan, order[i]));
    if (!say_several(plan, request, limit, &other, false)) /* others have moved a default */
        say_several(plan, request, limit, &other, true);
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
    static const enum burin_knob order[] = {
        BURIN_KNOB_DRAFT,   BURIN_KNOB_IMAGES,     BURIN_KNOB_FRAMES, BURIN_KNOB_CLIPS,
        BURIN_KNOB_THREADS, BURIN_KNOB_PARALLEL,   BURIN_KNOB_BATCH,  BURIN_KNOB_CONTEXT,
        BURIN_KNOB_POOL,    BURIN_KNOB_POOL_BYTES,
    };
    struct burin_plan_request smallest = burin_plan_hold(plan, request);
    if (!plan->graphs_assumed)
        smallest.graphs = (struct burin_graphs){ .none = true };
    if (plan->kv) {
        smallest.kv_dtype_given = true;
        smallest.kv_dtype = narrowest(plan)->dtype;
    }
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (burin_knob_may_turn(plan, request, order[i]))
            burin_knob_turn(
                    &smallest, order[i], burin_knob_least(plan, &smallest, order[i]));
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
    for (enum burin_knob knob = 0; knob < BURIN_N_KNOBS; knob++)
        if (burin_knob_may_turn(plan, request, knob))
            burin_put(
                    &put, " %s %s", burin_knobs[knob].option,
                    burin_knob_text(knob, burin_knob_planned(least, knob)).text);
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
        struct burin_text24 now = given_bytes(request->limit_bytes);
        if (request->limit == BURIN_LIMIT_FRACTION)
            snprintf(now.text, sizeof now.text, "%g", request->limit_fraction);
        if (request->limit == BURIN_LIMIT_RESERVE_DEFAULT)
            now = burin_human_bytes(plan->card.available_bytes - plan->limit_bytes);
        snprintf(
                plan->advice, sizeof plan->advice, "Smallest change: %s in place of %s%s.",
                option, now.text,
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
        bool *mends,
        struct burin_error *err)
{
    const struct burin_plan_request smallest = smallest_of(plan, request);
    struct burin_plan least;
    const enum burin_status status = burin_plan_sketch(&least, &smallest, false, err);
    *mends = true;
    if (status)
        return status;
    if (least.fits)
        advise_several(plan, request, "", &smallest);
    else if (!advise_limit(plan, request, &smallest)) {
        advise_recipe(plan, request, &least);
        *mends = false;
    }
    return BURIN_OK;
}

/* Within what is free of the card. *mends: options do. */
static enum burin_status advise_free(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        bool *mends,
        struct burin_error *err)
{
    struct advice best = { 0 };
    offer_numbers(plan, request, &best);
    if (plan->kv)
        offer_kv_dtypes(plan, request, &best);
    if (plan->family->sm) {
        offer_graphs(plan, request, &best);
        offer_budgets(plan, request, &best);
    }
    *mends = best.found;
    if (!best.found)
        return advise_all(plan, request, mends, err);
    snprintf(plan->advice, sizeof plan->advice, "%s", best.text);
    return BURIN_OK;
}

/* What would do if nobody else had anything of the card, behind what mends it as it is, or in
 * place of its being too small. */
static void advise_others(
        struct burin_plan *plan, const struct burin_plan_request *request, bool mends)
{
    struct burin_plan whole;
    struct burin_plan_request all = *request;
    all.card.available_bytes = all.card.total_bytes;
    bool whole_mends = false;
    if (burin_plan_sketch(&whole, &all, false, NULL) ||
        (!whole.fits &&
         (mends || advise_free(&whole, &all, &whole_mends, NULL) || !whole_mends)))
        return;

    struct burin_put put = { plan->advice, sizeof plan->advice,
                             mends ? strlen(plan->advice) : 0 };
    burin_put(
            &put, "%s what they hold: %s has %s free of %s%s%s",
            mends ? " Or others give back" : "No option mends it until others give back",
            plan->card.name, burin_human_bytes(plan->card.available_bytes).text,
            burin_human_bytes(plan->card.total_bytes).text,
            whole.fits ? ", all of it would do." : ". With all of it: ", whole.advice);
}

enum burin_status burin_plan_advise(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err)
{
    bool mends = false;
    const enum burin_status status = advise_free(plan, request, &mends, err);
    if (!status && plan->family->sm &&
        request->card.available_bytes < request->card.total_bytes)
        advise_others(plan, request, mends);
    return status;
}
