#include "runtime/plan/plan.h"

#include "runtime/base/put.h"
#include "runtime/base/units.h"
#include "runtime/plan/knobs.h"
#include "runtime/plan/runs.h"
#include "runtime/plan/size.h"
#include "runtime/plan/sketch.h"

#include <stdio.h>
#include <string.h>

enum {
    /* The worst known of a tokenizer: text, two hashes and a merge a token. */
    TOKENIZER_BYTES = 128 * 1024,
    TOKENIZER_BYTES_A_TOKEN = 256,
};

static const char *const dtype_names[BURIN_N_DTYPES] = {
    [BURIN_F32] = "f32", [BURIN_F16] = "f16",     [BURIN_BF16] = "bf16",
    [BURIN_I32] = "i32", [BURIN_U8] = "u8",       [BURIN_Q8] = "q8",
    [BURIN_FP8] = "fp8", [BURIN_NVFP4] = "nvfp4",
};

const char *burin_dtype_name(enum burin_dtype dtype)
{
    return dtype < BURIN_N_DTYPES ? dtype_names[dtype] : "?";
}

int burin_dtype_by_name(const char *name)
{
    for (int i = 0; i < BURIN_N_DTYPES; i++)
        if (strcmp(name, dtype_names[i]) == 0)
            return i;
    return -1;
}

const struct burin_ladder *burin_graphs_named(
        const struct burin_graphs *graphs, const char *program, size_t length)
{
    for (int i = 0; i < graphs->n; i++)
        if (strlen(graphs->named[i].program) == length &&
            strncmp(graphs->named[i].program, program, length) == 0)
            return &graphs->named[i].ladder;
    return NULL;
}

/* "step=1,2,4", whose program has `length` bytes. */
static enum burin_status add_named(
        struct burin_graphs *graphs,
        const char *text,
        size_t length,
        struct burin_error *err)
{
    const struct burin_ladder *before = burin_graphs_named(graphs, text, length);
    if (before)
        return burin_fail(
                err, BURIN_EUSAGE,
                "--graphs %.*s=%s and --graphs %.60s: a program has one list", (int)length,
                text, burin_ladder_end(before).text, text);
    if (graphs->n == BURIN_MAX_PROGRAMS)
        return burin_fail(
                err, BURIN_EUSAGE, "--graphs names more than %d programs",
                BURIN_MAX_PROGRAMS);
    const char *sizes = text + length + 1;
    const enum burin_status status =
            burin_ladder_parse(&graphs->named[graphs->n].ladder, sizes, strlen(sizes), err);
    if (status)
        return status;
    snprintf(
            graphs->named[graphs->n].program, sizeof graphs->named[0].program, "%.*s",
            (int)length, text);
    graphs->n++;
    return BURIN_OK;
}

enum burin_status burin_graphs_parse(
        struct burin_graphs *graphs, const char *text, struct burin_error *err)
{
    const size_t length = strcspn(text, "=");
    const bool none = strcmp(text, "none") == 0;
    if (!none && (!length || !text[length] || length >= sizeof graphs->named[0].program))
        return burin_fail(
                err, BURIN_EUSAGE,
                "--graphs is none, or a program and its sizes like step=1,2,4, not '%.60s'",
                text);
    if (none ? graphs->n > 0 : graphs->none)
        return burin_fail(
                err, BURIN_EUSAGE, "--graphs none has no graphs, --graphs %.60s%s has some",
                none ? graphs->named[0].program : text, none ? "=..." : "");
    graphs->none |= none;
    return none ? BURIN_OK : add_named(graphs, text, length, err);
}

/* A picture that no step takes: a plan is without it where none is on its way. */
static enum burin_status offer_no_pictures(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        enum burin_status status,
        struct burin_error *err)
{
    struct burin_plan_request other = *request;
    const int item = burin_plan_spanned(plan);
    burin_knob_turn(&other, BURIN_KNOB_IMAGES, 0);
    if (!err || request->largest_picture ||
        (item <= plan->n_batch && item <= plan->n_ctx) || !burin_plan_sketch_fits(&other))
        return status;
    const struct burin_error first = *err;
    return burin_fail(err, status, "%s, --images 0 plans for none", first.message);
}

enum burin_status burin_plan_make(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err)
{
    const enum burin_status status = burin_plan_sketch(plan, request, true, err);
    if (status)
        return offer_no_pictures(plan, request, status, err);
    burin_plan_find_largest(plan, request);
    return plan->fits ? BURIN_OK : burin_plan_advise(plan, request, err);
}

void burin_plan_largest_text(const struct burin_plan *plan, char *text, size_t capacity)
{
    struct burin_plan_run run;
    struct burin_plan_piece pieces[3];
    struct burin_put put = { text, capacity, 0 };
    text[0] = '\0';
    if (!burin_plan_largest_run(plan, &run))
        return;
    burin_put(
            &put, "The largest run is %s, n = %d%s:", run.program->name, run.n,
            burin_is_encoder(run.program)    ? ", its budget of soft tokens"
            : plan->family->sm && !run.graph ? " tokens without a graph"
                                             : "");
    const int n = burin_plan_pieces(plan, &run, pieces, 3);
    for (int i = 0; i < n; i++) {
        char shape[BURIN_SHAPE_TEXT];
        burin_plan_shape(plan, &run, &pieces[i], shape);
        burin_put(
                &put, "%s %s %s %s, %lld bytes", i ? ";" : "",
                pieces[i].input ? "input" : "buffer", pieces[i].name, shape,
                (long long)pieces[i].bytes);
    }
    burin_put(&put, ".");
}

enum burin_status burin_plan_check(const struct burin_plan *plan, struct burin_error *err)
{
    if (plan->fits)
        return BURIN_OK;
    char pieces[512], graphs[512];
    burin_plan_largest_text(plan, pieces, sizeof pieces);
    burin_plan_graphs_text(plan, graphs, sizeof graphs);
    const struct burin_plan_owner *largest = &plan->owners[plan->largest];
    return burin_fail(
            err, BURIN_ENOMEM,
            "%s needs %s and may use %s of %s: %s by %s (%lld bytes).\n%s%s"
            "The largest part is %s, %s. %s\n%s",
            plan->model->name, burin_human_bytes(plan->total_bytes).text,
            burin_human_bytes(plan->limit_bytes).text, plan->card.name,
            plan->total_bytes > plan->limit_bytes ? "short" : "graphs too large",
            burin_human_bytes(plan->short_by_bytes).text, (long long)plan->short_by_bytes,
            graphs, graphs[0] ? "\n" : "", largest->name,
            burin_human_bytes(largest->bytes).text, pieces, plan->advice);
}

bool burin_plan_drift(
        int64_t planned, int64_t obtained, int n_nodes, char *text, size_t capacity)
{
    const int64_t least = 64 << 20;
    const int64_t margin = planned / 10 > least ? planned / 10 : least;
    text[0] = '\0';
    if (obtained <= burin_add(planned, margin))
        return false;
    snprintf(
            text, capacity,
            "graphs of %d nodes took %lld bytes, %lld were planned: KV has so much less",
            n_nodes, (long long)obtained, (long long)planned);
    return true;
}

int64_t burin_plan_tokenizer_bytes(int64_t n_vocab)
{
    return burin_add(TOKENIZER_BYTES, burin_multiply(TOKENIZER_BYTES_A_TOKEN, n_vocab));
}

int64_t burin_plan_owner_bytes(const struct burin_plan *plan, const char *name)
{
    for (int i = 0; i < plan->n_owners; i++)
        if (strcmp(plan->owners[i].name, name) == 0)
            return plan->owners[i].bytes;
    return 0;
}
