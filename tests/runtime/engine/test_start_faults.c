/* Start-up of a GPU, in which each call of the driver's, of NVRTC's and of NVML's fails once. */
#include "tests/runtime/engine/rehearse.h"
#include "tests/runtime/engine/survived.h"

static enum burin_status rehearse_once(struct burin_error *err)
{
    const enum burin_status status = burin_rehearse(&rehearsal, &plan, &request, err);
    burin_rehearsal_close(&rehearsal);
    return status;
}

SPEC(every_call_of_start_up_may_fail_once)
{
    plan_on(4 * GIB);
    plan = gpu_plan(&request);
    card = burin_rehearsal_card(&plan);
    fail_every_call(&(struct fault_plan){ &card, rehearse_once, start_survived, noted });
}

SPEC(likewise_where_addresses_come_with_their_memory)
{
    plan_on(4 * GIB);
    plan = gpu_plan(&request);
    card = burin_rehearsal_card(&plan);
    card.no_vmm = true;
    fail_every_call(&(struct fault_plan){ &card, rehearse_once, start_survived, noted });
}

SPEC(work_that_fails_behind_its_call_ends_the_start)
{
    static const char *const calls[] = { "cuLaunchKernel", "cuGraphLaunch",
                                         "cuMemcpyHtoDAsync_v2", "cuMemsetD8Async" };
    static const struct fault_survived none[] = { { NULL, NULL, NULL } };
    plan_on(4 * GIB);
    plan = gpu_plan(&request);
    card = burin_rehearsal_card(&plan);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int nth = 1; nth < 3; nth++) {
            const struct fault_case at = { calls[i], nth, CU_ILLEGAL_ADDRESS,
                                           BURIN_FAULT_LATER };
            fail_one_call(&(struct fault_plan){ &card, rehearse_once, none, noted }, &at);
        }
}
