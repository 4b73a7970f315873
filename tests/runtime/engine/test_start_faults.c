/* Start-up of a GPU, in which each call of the driver's, of NVRTC's and of NVML's fails once. */
#include "tests/runtime/engine/rehearse.h"
#include "tests/support/every_fault.h"

static enum burin_status rehearse_once(struct burin_error *err)
{
    const enum burin_status status = burin_rehearse(&rehearsal, &plan, &request, err);
    burin_rehearsal_close(&rehearsal);
    return status;
}

#define GONE "what it gives back is gone, whatever it answers"

static const struct fault_survived survived[] = {
    { "cuStreamDestroy_v2", GONE, NULL },
    { "cuEventDestroy_v2", GONE, NULL },
    { "cuGraphDestroy", GONE, NULL },
    { "cuGraphExecDestroy", GONE, NULL },
    { "cuMemFreeHost", GONE, NULL },
    { "cuMemFree_v2", GONE, NULL },
    { "cuMemUnmap", GONE, NULL },
    { "cuMemAddressFree", GONE, NULL },
    { "cuModuleUnload", GONE, NULL },
    { "cuDevicePrimaryCtxRelease_v2", GONE, NULL },
    { "nvrtcDestroyProgram", GONE, NULL },
    { "nvmlShutdown", GONE, NULL },
    { "cuCtxSetCurrent", "the last one lets go of a context that goes anyway", NULL },
    { "cuDriverGetVersion", "any NVRTC will do then", NULL },
    { "cuMemGetInfo_v2", "what is free is asked for messages, too", NULL },
    { "nvmlInit_v2", "the device's own numbers do", "NVML tells nothing" },
    { "nvmlDeviceGetHandleByPciBusId_v2", "likewise", "NVML tells nothing" },
    { "nvmlDeviceGetMemoryInfo_v2", "likewise", "NVML tells nothing" },
    { "nvmlDeviceGetComputeRunningProcesses_v3", "likewise", NULL },
    { "nvmlSystemGetProcessName", "a name is for messages", NULL },
    { "cuMemAddressReserve", "of pages: fewer are asked for, not below the plan", NULL },
    { "cuMemCreate", "of pages: smaller pieces are asked for", NULL },
    { "cuMemAlloc_v2", "likewise", NULL },
    { "cuMemMap", "likewise", NULL },
    { "cuMemRelease", "likewise", NULL },
    { "cuMemSetAccess", "likewise", NULL },
    { "cuMemsetD8Async", "likewise: they are zeroed", NULL },
    { "cuStreamSynchronize", "likewise, or a graph is given up", NULL },
    { "cuMemcpyHtoDAsync_v2", "a graph is given up", "is given up" },
    { "cuLaunchKernel", "a graph is given up", "is given up" },
    { "cuGraphGetNodes", "a graph is given up", "is given up" },
    { "cuGraphInstantiateWithFlags", "a graph is given up", "is given up" },
    { "cuGraphUpload", "a graph is given up", "is given up" },
    { "cuGraphLaunch", "a graph is given up", "is given up" },
    { "cuStreamBeginCapture_v2", "a graph is given up", "is given up" },
    { "cuStreamEndCapture", "a graph is given up", "is given up" },
    { "nvrtcGetProgramLogSize", "a message does without the log", NULL },
    { "nvrtcGetProgramLog", "a message does without the log", NULL },
    { NULL, NULL, NULL },
};

SPEC(every_call_of_start_up_may_fail_once)
{
    plan_on(4 * GIB);
    plan = gpu_plan(&request);
    card = burin_rehearsal_card(&plan);
    fail_every_call(&(struct fault_plan){ &card, rehearse_once, survived, noted });
}

SPEC(likewise_where_addresses_come_with_their_memory)
{
    plan_on(4 * GIB);
    plan = gpu_plan(&request);
    card = burin_rehearsal_card(&plan);
    card.no_vmm = true;
    fail_every_call(&(struct fault_plan){ &card, rehearse_once, survived, noted });
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
