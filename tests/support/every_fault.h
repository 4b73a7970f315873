/* tests/support/every_fault.h -- A piece of work on a virtual GPU, in which each call of the
 * driver's, of NVRTC's and of NVML's fails once: at its first, its second and its last time.
 *
 *     static enum burin_status work(struct burin_error *err);   opens, works, closes
 *     fail_every_call(&(struct fault_plan){ &options, work, may_succeed });
 *
 * Each time the work must end with a message that names the call, or well if the list says that
 * it does without that call; nothing may be left that was not given back, and no memory given back
 * that a copy under way still needs. Include it once. */
#ifndef BURIN_TEST_EVERY_FAULT_H
#define BURIN_TEST_EVERY_FAULT_H

#include "runtime/base/status.h"
#include "runtime/device/virtual/virtual.h"
#include "tests/support/test.h"

#include <string.h>

struct fault_plan {
    const struct burin_virtual_options *options;
    /* On the machine that is selected. It gives back all that it took, whatever happens. */
    enum burin_status (*work)(struct burin_error *err);
    /* Calls whose failure the work survives, and why; ends with a NULL name. */
    const struct fault_survived {
        const char *call;
        const char *why;
        const char
                *told; /* what told() then says, somewhere; NULL: nothing needs be said */
    } * survived;
    bool (*told)(
            const char *words); /* by the last work; NULL: none of them says anything */
};

struct fault_case {
    const char *call;
    int nth;
    int error;
    enum burin_virtual_fault fault;
};

static inline bool is_driver(const char *call)
{
    return strncmp(call, "cu", 2) == 0;
}

static inline const struct fault_survived *survives(
        const struct fault_plan *faults, const char *call)
{
    for (const struct fault_survived *s = faults->survived; s->call; s++)
        if (strcmp(s->call, call) == 0)
            return s;
    return NULL;
}

/* "cuMemAlloc" of "cuMemAlloc_v2": as people know it. */
static inline bool names(const char *message, const char *call)
{
    static const char *const endings[] = { "_v", "WithFlags", "Size" };
    char name[64] = "";
    strncat(name, call, sizeof name - 1);
    for (int i = 0; i < 3; i++)
        if (strstr(name, endings[i]))
            *strstr(name, endings[i]) = '\0';
    return strstr(message, name) != NULL;
}

/* In a call that has nothing to do with it. */
static inline bool may_show_later(
        const struct fault_plan *faults, const struct fault_case *at)
{
    return at->fault == BURIN_FAULT_LATER ||
           (at->fault == BURIN_FAULT_STICKY && survives(faults, at->call));
}

static inline void check_nothing_is_left(
        const struct burin_virtual *gpu, const struct fault_case *at)
{
    char text[512];
    burin_virtual_held_text(gpu, text, sizeof text);
    if (text[0])
        fail_msg("%s, call %d, error %d: left: %s", at->call, at->nth, at->error, text);
    assert_int_equal(burin_virtual_memory(gpu, 0).ours[0], 0);
    if (burin_virtual_counts(gpu).torn)
        fail_msg(
                "%s, call %d, error %d: memory of a copy under way is given back", at->call,
                at->nth, at->error);
}

static inline void fail_one_call(
        const struct fault_plan *faults, const struct fault_case *at)
{
    struct burin_virtual *gpu;
    struct burin_error err = { 0 };
    assert_int_equal(burin_virtual_open(&gpu, faults->options, NULL), BURIN_OK);
    burin_virtual_fail(gpu, at->call, at->nth, at->error, at->fault);

    const enum burin_status status = faults->work(&err);

    if (!status && !survives(faults, at->call))
        fail_msg("%s, call %d, error %d: not noticed", at->call, at->nth, at->error);
    if (!status && survives(faults, at->call)->told &&
        !faults->told(survives(faults, at->call)->told))
        fail_msg("%s, call %d, error %d: not told", at->call, at->nth, at->error);
    if (status && !may_show_later(faults, at) && !names(err.message, at->call))
        fail_msg(
                "%s, call %d, error %d: the message does not name it: %s", at->call,
                at->nth, at->error, err.message);
    if (status && status != BURIN_ENOMEM && at->error == CU_OUT_OF_MEMORY &&
        is_driver(at->call) && at->fault == BURIN_FAULT_ONCE)
        fail_msg("%s, call %d: not told as memory: %s", at->call, at->nth, err.message);
    check_nothing_is_left(gpu, at);
    burin_virtual_close(gpu);
}

static inline void fail_call(const struct fault_plan *faults, const char *call, int n)
{
    const int nth[] = { 1, 2, n };
    for (int i = 0; i < 3; i++) {
        if (nth[i] > n || (i == 2 && n <= 2))
            continue;
        struct fault_case at = { call, nth[i], CU_UNKNOWN, BURIN_FAULT_ONCE };
        fail_one_call(faults, &at);
        if (!is_driver(call))
            continue;
        at.error = CU_OUT_OF_MEMORY;
        fail_one_call(faults, &at);
        at.error = CU_ILLEGAL_ADDRESS;
        at.fault = BURIN_FAULT_STICKY;
        fail_one_call(faults, &at);
    }
}

/* First without a fault: that tells which calls there are. */
static inline void fail_every_call(const struct fault_plan *faults)
{
    struct burin_virtual *gpu;
    struct burin_error err = { 0 };
    const struct fault_case none = { "no call", 0, 0, BURIN_FAULT_ONCE };
    assert_int_equal(burin_virtual_open(&gpu, faults->options, NULL), BURIN_OK);
    if (faults->work(&err))
        fail_msg("without a fault: %s", err.message);
    check_nothing_is_left(gpu, &none);

    for (int i = 0; burin_virtual_call(gpu, i).name; i++) {
        const struct burin_virtual_call call = burin_virtual_call(gpu, i);
        fail_call(faults, call.name, call.n);
    }
    burin_virtual_close(gpu);
}

#endif
