#include "runtime/engine/capture.h"

#include "runtime/engine/harmless.h"
#include "runtime/plan/runs.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

int burin_capture_count(const struct burin_plan *plan, int64_t *n_nodes)
{
    struct burin_plan_run run;
    int n = 0;
    *n_nodes = 0;
    for (int i = 0; burin_plan_run_at(plan, i, &run); i++)
        if (run.graph) {
            n++;
            *n_nodes += run.program->graph.kernel_nodes + run.program->graph.copy_nodes;
        }
    return n;
}

static struct burin_program_call *call_of(
        const struct burin_capturing *c, const struct burin_program *program)
{
    return &c->calls[program - c->plan->family->programs];
}

/* ---- Warm-up ----------------------------------------------------------------------------- */

static enum burin_status send_harmless(
        const struct burin_capturing *c,
        struct burin_program_call *of,
        const int *extents,
        struct burin_error *err)
{
    memcpy(of->call.n, extents, sizeof of->call.n);
    burin_harmless_inputs(c->staging, of);
    return burin_staging_send(c->staging, of, err);
}

enum burin_status burin_warm_up(const struct burin_capturing *c, struct burin_error *err)
{
    const struct burin_plan *plan = c->plan;
    enum burin_status status = BURIN_OK;
    for (int p = 0; p < plan->family->n_programs && !status; p++) {
        struct burin_program_call *of = &c->calls[p];
        int n[BURIN_N_EXTENTS];
        if (!plan->programs[p].active)
            continue;
        burin_largest_extents(plan, p, n);
        status = send_harmless(c, of, n, err);
        if (!status)
            status = burin_queue_run(
                    c->staging->queue, of->program, plan->kv_index, &of->call, err);
        if (!status)
            status = burin_queue_finish(c->staging->queue, err);
    }
    return status;
}

/* ---- What is given up -------------------------------------------------------------------- */

/* The next larger one of a program, without entry `except`; 0 where there is none. */
static int next_larger(
        const struct burin_captures *captures,
        const struct burin_program *program,
        int n,
        int except)
{
    int next = 0;
    for (int i = 0; i < captures->n; i++) {
        const struct burin_captured *at = &captures->at[i];
        if (i != except && at->program == program && at->n > n && (!next || at->n < next))
            next = at->n;
    }
    return next;
}

/* What it would cost not to have it, in thousandths of a run; those of encoders count less. */
static int loss(
        const struct burin_captures *captures,
        const struct burin_program *program,
        int n,
        int at)
{
    const int next = next_larger(captures, program, n, at);
    const int share = next ? (int)(1000 * (int64_t)(next - n) / next) : 1000;
    return burin_is_encoder(program) ? share - 2000 : share;
}

enum { MOST_TOLD = 10 }; /* one by one */

static void tell(
        struct burin_capturing *c,
        const struct burin_program *program,
        int n,
        int at,
        const struct burin_error *why)
{
    char text[400];
    const int next = next_larger(c->captures, program, n, at);
    char instead[64] = "launched kernel by kernel";
    if (next)
        snprintf(
                instead, sizeof instead, "padded to %d, %d %% of it unused", next,
                100 * (next - n) / next);
    snprintf(
            text, sizeof text, "graph %s %d is given up, its runs are %s: %.200s",
            program->name, n, instead, why->message);
    c->n_dropped++;
    if (c->note && c->n_dropped <= MOST_TOLD)
        c->note(c->user, text);
}

static void tell_others(struct burin_capturing *c)
{
    char text[100];
    snprintf(
            text, sizeof text, "%d graphs more are given up likewise",
            c->n_dropped - MOST_TOLD);
    if (c->note && c->n_dropped > MOST_TOLD)
        c->note(c->user, text);
}

/* Give up the least useful of what there is and of the one that was not to be had. True where that
 * made room for it. */
static bool make_room(
        struct burin_capturing *c,
        const struct burin_plan_run *run,
        const struct burin_error *why)
{
    int least = -1;
    int least_loss = loss(c->captures, run->program, run->n, -1);
    for (int i = 0; i < c->captures->n; i++) {
        const struct burin_captured *at = &c->captures->at[i];
        const int its = loss(c->captures, at->program, at->n, i);
        if (its < least_loss) {
            least = i;
            least_loss = its;
        }
    }
    if (least < 0) {
        tell(c, run->program, run->n, -1, why);
        return false;
    }
    const struct burin_captured gone = c->captures->at[least];
    tell(c, gone.program, gone.n, least, why);
    burin_captures_drop(c->captures, least);
    return true;
}

/* ---- Capture ----------------------------------------------------------------------------- */

static enum burin_status capture_one(
        struct burin_capturing *c,
        const struct burin_plan_run *run,
        struct burin_error *err)
{
    struct burin_program_call *of = call_of(c, run->program);
    struct burin_captured captured = { .program = run->program, .n = run->n };
    enum burin_status status = send_harmless(c, of, run->extents, err);
    if (!status)
        status = burin_queue_capture(
                c->staging->queue, run->program, c->plan->kv_index, &of->call,
                &captured.graph, err);
    if (!status)
        status = burin_graph_launch(&captured.graph, c->staging->queue, err);
    if (!status)
        status = burin_queue_finish(c->staging->queue, err);
    if (status)
        burin_graph_close(&captured.graph);
    else
        burin_captures_add(c->captures, &captured);
    return status;
}

static enum burin_status capture_or_give_up(
        struct burin_capturing *c,
        const struct burin_plan_run *run,
        struct burin_error *err)
{
    struct burin_error why = { 0 };
    enum burin_status status;
    do
        status = capture_one(c, run, &why);
    while (status == BURIN_ENOMEM && make_room(c, run, &why));
    if (status == BURIN_ENOMEM)
        return BURIN_OK;
    if (status && err)
        *err = why;
    return status;
}

/* The graphs of a program lie one behind another in the plan, from the smallest. */
static bool graph_at(
        const struct burin_plan *plan, int program, int i, struct burin_plan_run *run)
{
    int seen = 0;
    for (int k = 0; burin_plan_run_at(plan, k, run); k++)
        if (run->graph && run->program == &plan->family->programs[program] && seen++ == i)
            return true;
    return false;
}

enum burin_status burin_capture_all(struct burin_capturing *c, struct burin_error *err)
{
    const struct burin_plan *plan = c->plan;
    int64_t n_nodes;
    const int total = burin_capture_count(plan, &n_nodes);
    int done = 0;
    enum burin_status status = BURIN_OK;
    for (int p = 0; p < plan->family->n_programs; p++)
        for (int i = plan->programs[p].graphs.n - 1; i >= 0 && !status; i--) {
            struct burin_plan_run run;
            if (!plan->programs[p].active || !graph_at(plan, p, i, &run))
                continue;
            status = capture_or_give_up(c, &run, err);
            done++;
            if (!status && c->progress && !c->progress(c->user, done, total))
                status = burin_fail(err, BURIN_ESTOPPED, "interrupted while capturing");
        }
    tell_others(c);
    return status;
}
