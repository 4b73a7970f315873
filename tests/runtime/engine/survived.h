/* tests/runtime/engine/survived.h -- Calls whose failure a start survives, and what it then says.
 * All others end it with a message that names them. Include it once. */
#ifndef BURIN_TEST_SURVIVED_H
#define BURIN_TEST_SURVIVED_H

#include "tests/support/every_fault.h"

#define GONE "what it gives back is gone, whatever it answers"

static const struct fault_survived start_survived[] = {
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

#endif
