/* runtime/engine/rehearsal.h -- A family whose programs launch as many kernels as the real ones and
 * compute nothing: start-up runs on a virtual GPU without kernels and without weights.
 *
 * Memory   The struct must not be moved; it points into itself and the family's tables.
 * Threads  Read-only once it is made. */
#ifndef BURIN_ENGINE_REHEARSAL_H
#define BURIN_ENGINE_REHEARSAL_H

#include "runtime/device/virtual/virtual.h"
#include "runtime/engine/startup.h"
#include "runtime/model.h"
#include "runtime/plan/plan.h"

struct burin_rehearsed_family {
    struct burin_family family;
    struct burin_program programs[BURIN_MAX_PROGRAMS];
};

/* Calls of these programs must be those of a struct burin_program_call (calls.h). */
void burin_rehearsed_family_make(
        struct burin_rehearsed_family *stand_in, const struct burin_family *family);

/* The plan's card, with a driver that takes what the plan assumes. */
struct burin_virtual_options burin_rehearsal_card(const struct burin_plan *plan);

/* A start and what it has taken. */
struct burin_rehearsal {
    struct burin_rehearsed_family stand_in;
    struct burin_plan plan; /* with what was obtained */
    struct burin_plan_request request;
    struct burin_gpu gpu;
    struct burin_ledger ledger;
    struct burin_memory memory;
    struct burin_queue queue;
    struct burin_staging staging;
    struct burin_captures captures;
    struct burin_start start;
};

/* A start of a plan; rehearsal->start may be changed before it runs. */
void burin_rehearsal_open(
        struct burin_rehearsal *rehearsal,
        const struct burin_plan *plan,
        const struct burin_plan_request *request);

/* Run it on card number 0 of the virtual machine that is selected, and seal.
 * burin_rehearsal_close() comes behind it whatever it returns. */
enum burin_status burin_rehearsal_run(
        struct burin_rehearsal *rehearsal, struct burin_error *err);

/* Both. */
enum burin_status burin_rehearse(
        struct burin_rehearsal *rehearsal,
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err);
void burin_rehearsal_close(struct burin_rehearsal *rehearsal);

#endif
