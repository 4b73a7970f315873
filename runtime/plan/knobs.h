/* runtime/plan/knobs.h -- The numbers that a user may turn down, and how far. Each answer
 * is found by planning it; what is said of them is advice.c's.
 *
 * Units    A knob's own: tokens, sequences, pictures, ... as its option takes them.
 * Memory   Nothing is allocated; an option's text is static.
 * Errors   None: that nothing fits is an answer, -1.
 * Threads  Pure functions. */
#ifndef BURIN_PLAN_KNOBS_H
#define BURIN_PLAN_KNOBS_H

#include "runtime/base/units.h"
#include "runtime/plan/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum burin_knob {
    BURIN_KNOB_CONTEXT,
    BURIN_KNOB_BATCH,
    BURIN_KNOB_PARALLEL,
    BURIN_KNOB_POOL, /* in the unit that it was given in */
    BURIN_KNOB_POOL_BYTES,
    BURIN_KNOB_DRAFT,
    BURIN_KNOB_IMAGES,
    BURIN_KNOB_FRAMES,
    BURIN_KNOB_CLIPS,
    BURIN_KNOB_THREADS,
    BURIN_N_KNOBS
};

/* A row for each. */
struct burin_knob_row {
    const char *option;
    size_t planned,
            asked; /* where the number stands in a plan (bytes: no field), a request */
    bool wide;     /* an int64_t; else an int */
    int least;     /* below it nothing is left of what the option is for */
    double pain;   /* of losing a share of it, against the same share of the context */
};
extern const struct burin_knob_row burin_knobs[BURIN_N_KNOBS];

/* What is planned; what a request asks for that burin_knob_turn() has been at. */
int64_t burin_knob_planned(const struct burin_plan *plan, enum burin_knob knob);
int64_t burin_knob_asked(const struct burin_plan_request *request, enum burin_knob knob);

/* What its option says: a plan may have it in whole pages, or no more than there is. What is left
 * to the plan is what is planned. */
int64_t burin_knob_given(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        enum burin_knob knob);

/* A value as the option takes it. */
struct burin_text24 burin_knob_text(enum burin_knob knob, int64_t value);

/* Ask for `value`, in place of all that the request says of it. */
void burin_knob_turn(
        struct burin_plan_request *request, enum burin_knob knob, int64_t value);

/* Whether there is something of a number to give up. */
bool burin_knob_may_turn(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        enum burin_knob knob);

/* The request with the number of sequences that is planned: left to its default, what makes
 * a plan of many short ones might make none of a single longer one. */
struct burin_plan_request burin_plan_hold(
        const struct burin_plan *plan, const struct burin_plan_request *request);

/* The least of a number that makes a plan at all, whatever the memory, beside the others
 * that `request` asks for. What is planned makes one. */
int64_t burin_knob_least(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        enum burin_knob knob);

/* The largest from `least` to `most` that fits: in whole steps (a page of context or pool,
 * 32 tokens of a batch, a MiB) where that leaves something, else to the unit. -1 for none. */
int64_t burin_knob_lower(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        enum burin_knob knob,
        int64_t least,
        int64_t most);

/* Turn a number as large as it may be, up to `most`, in a request that fits. */
void burin_knob_raise(
        const struct burin_plan *plan,
        struct burin_plan_request *request,
        enum burin_knob knob,
        int64_t most);

#endif
