/* A GPU that is not there: cards, contexts, who has what, and what goes wrong on command. */
#include "tests/support/virtual_gpu.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

SPEC(nothing_works_before_cuInit)
{
    const struct burin_virtual_options options = small_gpu();
    int n;
    boot(&options);

    assert_int_equal(cu.cuDeviceGetCount(&n), CU_NOT_INITIALIZED);
    assert_int_equal(cu.cuInit(0), CU_OK);
    assert_int_equal(cu.cuDeviceGetCount(&n), CU_OK);

    assert_int_equal(n, 1);
    close_gpu();
    assert_int_equal(cu.cuInit(0), CU_NOT_INITIALIZED); /* the machine is gone */
}

SPEC(a_machine_without_a_card_says_so)
{
    struct burin_virtual_options options = small_gpu();
    options.n_cards = 0;
    boot(&options);

    assert_int_equal(cu.cuInit(0), CU_NO_DEVICE);
    close_gpu();
}

SPEC(a_granule_is_a_power_of_two)
{
    struct burin_virtual_options options = small_gpu();
    options.granule = 3;
    assert_int_equal(burin_virtual_open(&machine, &options, NULL), BURIN_EUSAGE);
    assert_null(machine);
}

SPEC(cards_are_told_apart)
{
    struct burin_virtual_options options = small_gpu();
    options.n_cards = 2;
    assert_int_equal(burin_card_parse(&options.cards[1], "rtx4090", NULL), BURIN_OK);
    boot(&options);
    cu.cuInit(0);
    char name[64];
    char ids[2][16];
    struct burin_cu_uuid uuids[2];
    size_t bytes;
    int device;
    int value;

    assert_int_equal(cu.cuDeviceGet(&device, 1), CU_OK);
    assert_int_equal(cu.cuDeviceGet(&device, 2), CU_INVALID_DEVICE);
    assert_int_equal(cu.cuDeviceGetName(name, sizeof name, 1), CU_OK);
    assert_int_equal(cu.cuDeviceTotalMem_v2(&bytes, 1), CU_OK);

    assert_string_equal(name, "virtual rtx4090");
    assert_int_equal(bytes, options.cards[1].total_bytes);
    cu.cuDeviceGetAttribute(&value, CU_DEVICE_SM_MAJOR, 1);
    assert_int_equal(value, 8);
    cu.cuDeviceGetAttribute(&value, CU_DEVICE_SM_MINOR, 1);
    assert_int_equal(value, 9);
    cu.cuDeviceGetAttribute(&value, CU_DEVICE_MULTIPROCESSORS, 1);
    assert_int_equal(value, 128);
    cu.cuDeviceGetAttribute(&value, CU_DEVICE_MAX_SHARED_OPT_IN, 1);
    assert_int_equal(value, 99 * 1024);
    for (int i = 0; i < 2; i++) {
        cu.cuDeviceGetUuid_v2(&uuids[i], i);
        cu.cuDeviceGetPCIBusId(ids[i], sizeof ids[i], i);
    }
    assert_memory_not_equal(&uuids[0], &uuids[1], sizeof uuids[0]);
    assert_string_equal(ids[1], "0000:02:00.0");
    close_gpu();
}

SPEC(errors_have_their_names)
{
    const char *text;
    on_a_small_gpu();
    assert_int_equal(cu.cuGetErrorName(CU_OUT_OF_MEMORY, &text), CU_OK);
    assert_string_equal(text, "CUDA_ERROR_OUT_OF_MEMORY");
    assert_int_equal(cu.cuGetErrorString(CU_ILLEGAL_ADDRESS, &text), CU_OK);
    assert_string_equal(text, "an illegal memory access was encountered");
    assert_int_equal(cu.cuGetErrorName(12345, &text), CU_INVALID_VALUE);
    assert_null(text);
    close_gpu();
}

/* ---- Contexts ------------------------------------------------------------------------ */

SPEC(a_context_takes_memory_once_however_often_it_is_retained)
{
    struct burin_cu_context *context;
    on_a_small_gpu();
    assert_int_equal(granules_used(), 3);

    cu.cuDevicePrimaryCtxRetain(&context, 0);
    assert_int_equal(granules_used(), 3);
    cu.cuDevicePrimaryCtxRelease_v2(0);
    assert_int_equal(granules_used(), 3);
    cu.cuDevicePrimaryCtxRelease_v2(0);

    assert_int_equal(granules_used(), 0);
    assert_int_equal(cu.cuDevicePrimaryCtxRelease_v2(0), CU_INVALID_CONTEXT);
    assert_int_equal(cu.cuCtxSetCurrent(context), CU_INVALID_CONTEXT);
    close_gpu();
}

SPEC(a_card_without_room_for_a_context_says_so_and_is_left_alone)
{
    struct burin_virtual_options options = small_gpu();
    struct burin_cu_context *context;
    options.context_bytes = N_GRANULES * GRANULE + 1;
    boot(&options);
    cu.cuInit(0);

    assert_int_equal(cu.cuDevicePrimaryCtxRetain(&context, 0), CU_OUT_OF_MEMORY);

    assert_int_equal(granules_used(), 0);
    assert_int_equal(burin_virtual_held(machine, 0, BURIN_VIRTUAL_CONTEXT).n, 0);
    close_gpu();
}

static void *ask_for_memory(void *result)
{
    size_t available, total;
    *(int *)result = cu.cuMemGetInfo_v2(&available, &total);
    return NULL;
}

SPEC(a_context_is_current_to_the_thread_that_made_it_so)
{
    pthread_t thread;
    int here, there;
    on_a_small_gpu();

    ask_for_memory(&here);
    pthread_create(&thread, NULL, ask_for_memory, &there);
    pthread_join(thread, NULL);

    assert_int_equal(here, CU_OK);
    assert_int_equal(there, CU_INVALID_CONTEXT);
    close_gpu();
}

SPEC(stacks_take_memory_when_their_limit_is_set_or_a_kernel_is_launched)
{
    struct burin_virtual_options options = small_gpu(); /* 2048 threads run at once */
    struct burin_cu_module *module;
    struct burin_cu_function *small, *large;
    size_t limit;
    boot(&options);
    with_context();
    burin_virtual_set_local(machine, "large", 8192);
    cu.cuModuleLoadData(&module, "");
    cu.cuModuleGetFunction(&small, module, "small");
    cu.cuModuleGetFunction(&large, module, "large");
    const size_t before = granules_used();

    assert_int_equal(cu.cuCtxSetLimit(CU_LIMIT_STACK, 4096), CU_OK);
    assert_int_equal(granules_used() - before, 4);
    assert_int_equal(cu.cuCtxSetLimit(CU_LIMIT_STACK, 1000), CU_OK);
    assert_int_equal(granules_used() - before, 1);
    assert_int_equal(cu.cuCtxGetLimit(&limit, CU_LIMIT_STACK), CU_OK);
    assert_int_equal(limit, 1008);

    int64_t obtained = burin_virtual_counts(machine).obtained;
    assert_int_equal(
            cu.cuLaunchKernel(small, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CU_OK);
    assert_int_equal(burin_virtual_counts(machine).obtained, obtained);
    assert_int_equal(
            cu.cuLaunchKernel(large, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CU_OK);
    assert_int_equal(burin_virtual_counts(machine).obtained, obtained + 1);
    assert_int_equal(granules_used() - before, 8);
    close_gpu();
}

/* ---- Who has what -------------------------------------------------------------------- */

SPEC(what_was_not_given_back_is_told_by_its_kind)
{
    struct burin_cu_stream *stream;
    struct burin_nvrtc_program *program;
    uint64_t address;
    char text[200];
    on_a_small_gpu();
    nvml.nvmlInit_v2();
    cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    cu.cuMemAlloc_v2(&address, 1);
    rtc.nvrtcCreateProgram(&program, "", "p", 0, NULL, NULL);

    burin_virtual_held_text(machine, text, sizeof text);

    assert_string_equal(
            text, "1 x context of 6291456 bytes, 1 x stream, 1 x allocation of 2097152 "
                  "bytes, 1 x program of NVRTC, 1 x use of NVML");
    cu.cuStreamDestroy_v2(stream);
    cu.cuMemFree_v2(address);
    rtc.nvrtcDestroyProgram(&program);
    nvml.nvmlShutdown();
    cu.cuDevicePrimaryCtxRelease_v2(0);
    burin_virtual_held_text(machine, text, sizeof text);
    assert_string_equal(text, "");
    assert_int_equal(granules_used(), 0);
    close_gpu();
}

SPEC(what_goes_down_with_its_context_was_not_given_back)
{
    struct burin_cu_event *event;
    char text[200];
    on_a_small_gpu();
    cu.cuEventCreate(&event, 0);

    cu.cuDevicePrimaryCtxRelease_v2(0);

    burin_virtual_held_text(machine, text, sizeof text);
    assert_string_equal(text, "1 x event");
    assert_int_equal(granules_used(), 0);
    close_gpu();
}

SPEC(every_call_is_counted_by_its_name)
{
    int n_names = 0;
    on_a_small_gpu();
    nvml.nvmlInit_v2();

    while (burin_virtual_call(machine, n_names).name)
        n_names++;

    assert_int_equal(burin_virtual_n_calls(machine, "cuInit"), 1);
    assert_int_equal(burin_virtual_n_calls(machine, "nvmlInit_v2"), 1);
    assert_int_equal(burin_virtual_n_calls(machine, "cuMemCreate"), 0);
    assert_string_equal(burin_virtual_call(machine, 0).name, "cuInit");
    assert_string_equal(
            burin_virtual_call(machine, n_names - 1).name, "nvmlSystemGetProcessName");
    assert_null(burin_virtual_call(machine, -1).name);
    close_gpu();
}

SPEC(NVML_tells_what_all_have)
{
    struct burin_nvml_device *device;
    struct burin_nvml_memory memory = { .version = BURIN_NVML_MEMORY };
    struct burin_nvml_process processes[4];
    char name[32];
    unsigned n = 1;
    on_a_small_gpu();
    burin_virtual_neighbour(machine, 0, NULL, 0, 5 * (int64_t)GRANULE);
    assert_int_not_equal(nvml.nvmlDeviceGetMemoryInfo_v2(NULL, &memory), NVML_OK);
    nvml.nvmlInit_v2();
    assert_int_equal(
            nvml.nvmlDeviceGetHandleByPciBusId_v2("00000000:01:00.0", &device), NVML_OK);

    assert_int_equal(nvml.nvmlDeviceGetMemoryInfo_v2(device, &memory), NVML_OK);
    assert_int_equal(
            nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, &n, processes),
            NVML_INSUFFICIENT_SIZE);
    assert_int_equal(n, 2);
    assert_int_equal(
            nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, &n, processes), NVML_OK);

    assert_int_equal(memory.used, 8 * GRANULE);
    assert_int_equal(memory.available, (N_GRANULES - 8) * GRANULE);
    assert_int_equal(processes[0].pid, getpid());
    assert_int_equal(processes[0].used, 3 * GRANULE);
    assert_int_equal(processes[1].used, 5 * GRANULE);
    nvml.nvmlSystemGetProcessName(processes[1].pid, name, sizeof name);
    assert_string_equal(name, "neighbour");
    close_gpu();
}

SPEC(two_of_our_processes_share_a_card)
{
    struct burin_nvml_device *device;
    struct burin_nvml_process processes[4];
    struct burin_cu_context *context;
    size_t available, total;
    unsigned n = 4;
    on_a_small_gpu();

    burin_virtual_select(machine, 1);
    assert_int_equal(cu.cuMemGetInfo_v2(&available, &total), CU_NOT_INITIALIZED);
    context = with_context();
    cu.cuMemGetInfo_v2(&available, &total);
    assert_int_equal(available / GRANULE, N_GRANULES - 2 * 3);
    nvml.nvmlInit_v2();
    nvml.nvmlDeviceGetHandleByPciBusId_v2("0000:01:00.0", &device);
    nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, &n, processes);
    assert_int_equal(n, 2);
    assert_int_equal(processes[1].pid, getpid()); /* that of the one that is served */
    assert_int_not_equal(processes[0].pid, getpid());

    burin_virtual_select(machine, 0);
    assert_int_equal(cu.cuMemGetInfo_v2(&available, &total), CU_OK); /* still its own */
    burin_virtual_end(machine, 1);
    cu.cuMemGetInfo_v2(&available, &total);
    assert_int_equal(available / GRANULE, N_GRANULES - 3);
    burin_virtual_select(machine, 1);
    assert_int_equal(cu.cuCtxSetCurrent(context), CU_NOT_INITIALIZED);
    close_gpu();
}

/* ---- On command ------------------------------------------------------------------------ */

SPEC(a_call_fails_at_its_nth_time_and_no_other)
{
    uint64_t address;
    on_a_small_gpu();
    burin_virtual_fail(machine, "cuMemAlloc_v2", 2, CU_OUT_OF_MEMORY, BURIN_FAULT_ONCE);

    assert_int_equal(cu.cuMemAlloc_v2(&address, 1), CU_OK);
    assert_int_equal(cu.cuMemAlloc_v2(&address, 1), CU_OUT_OF_MEMORY);
    assert_int_equal(cu.cuMemAlloc_v2(&address, 1), CU_OK);

    assert_int_equal(granules_used(), 3 + 2);
    close_gpu();
}

SPEC(a_sticky_error_answers_all_that_follows_and_what_is_given_back_is_back)
{
    struct burin_cu_stream *stream;
    uint64_t address;
    char text[200];
    on_a_small_gpu();
    cu.cuStreamCreate(&stream, 0);
    cu.cuMemAlloc_v2(&address, 1);
    burin_virtual_fail(
            machine, "cuStreamSynchronize", 1, CU_ILLEGAL_ADDRESS, BURIN_FAULT_STICKY);

    assert_int_equal(cu.cuStreamSynchronize(stream), CU_ILLEGAL_ADDRESS);
    assert_int_equal(cu.cuStreamSynchronize(stream), CU_ILLEGAL_ADDRESS);
    assert_int_equal(cu.cuMemAlloc_v2(&address, 1), CU_ILLEGAL_ADDRESS);
    assert_int_equal(cu.cuMemFree_v2(address), CU_ILLEGAL_ADDRESS);
    assert_int_equal(cu.cuStreamDestroy_v2(stream), CU_ILLEGAL_ADDRESS);
    assert_int_equal(cu.cuDevicePrimaryCtxRelease_v2(0), CU_OK);

    burin_virtual_held_text(machine, text, sizeof text);
    assert_string_equal(text, "");
    close_gpu();
}

SPEC(work_that_fails_is_told_where_somebody_waits)
{
    struct burin_cu_module *module;
    struct burin_cu_function *function;
    on_a_small_gpu();
    cu.cuModuleLoadData(&module, "");
    cu.cuModuleGetFunction(&function, module, "f");
    burin_virtual_fail(machine, "cuLaunchKernel", 1, CU_LAUNCH_FAILED, BURIN_FAULT_LATER);

    assert_int_equal(
            cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CU_OK);
    assert_int_equal(cu.cuStreamSynchronize(NULL), CU_LAUNCH_FAILED);
    assert_int_equal(cu.cuCtxSynchronize(), CU_LAUNCH_FAILED);
    close_gpu();
}

SPEC(NVRTC_and_NVML_fail_by_themselves)
{
    struct burin_nvrtc_program *program;
    const char *option = "--gpu-architecture=sm_90a";
    size_t available, total;
    on_a_small_gpu();
    burin_virtual_fail(
            machine, "nvrtcCompileProgram", 1, NVRTC_COMPILATION, BURIN_FAULT_ONCE);
    burin_virtual_fail(machine, "nvmlInit_v2", 1, 3, BURIN_FAULT_STICKY);

    rtc.nvrtcCreateProgram(&program, "", "p", 0, NULL, NULL);
    assert_int_equal(rtc.nvrtcCompileProgram(program, 1, &option), NVRTC_COMPILATION);
    assert_int_equal(rtc.nvrtcCompileProgram(program, 1, &option), NVRTC_OK);
    assert_int_equal(nvml.nvmlInit_v2(), 3);
    assert_int_equal(nvml.nvmlInit_v2(), 3);

    assert_int_equal(cu.cuMemGetInfo_v2(&available, &total), CU_OK);
    close_gpu();
}

SPEC(a_neighbour_takes_what_is_there_and_gives_back_what_it_has)
{
    size_t available, total;
    const int64_t granule = (int64_t)GRANULE;
    on_a_small_gpu();
    burin_virtual_neighbour(machine, 0, "cuMemGetInfo_v2", 1, 10 * granule);
    burin_virtual_neighbour(machine, 0, "cuMemGetInfo_v2", 2, 1000 * granule);
    burin_virtual_neighbour(machine, 0, "cuMemGetInfo_v2", 3, -1000 * granule);

    cu.cuMemGetInfo_v2(&available, &total);
    assert_int_equal(available / GRANULE, N_GRANULES - 3 - 10);
    cu.cuMemGetInfo_v2(&available, &total);
    assert_int_equal(available, 0);
    cu.cuMemGetInfo_v2(&available, &total);
    assert_int_equal(available / GRANULE, N_GRANULES - 3);
    assert_int_equal(burin_virtual_memory(machine, 0).most_used, N_GRANULES * GRANULE);
    close_gpu();
}

SPEC(NVRTC_takes_every_text_for_the_cards_that_it_knows)
{
    struct burin_nvrtc_program *program;
    const char *known = "-arch=sm_120a";
    const char *unknown = "--gpu-architecture=sm_70";
    size_t bytes;
    char cubin[200];
    on_a_small_gpu();
    assert_int_equal(
            rtc.nvrtcCreateProgram(&program, "text", "add", 0, NULL, NULL), NVRTC_OK);

    assert_int_not_equal(rtc.nvrtcCompileProgram(program, 1, &unknown), NVRTC_OK);
    assert_int_not_equal(rtc.nvrtcGetCUBINSize(program, &bytes), NVRTC_OK);
    assert_int_equal(rtc.nvrtcCompileProgram(program, 1, &known), NVRTC_OK);
    assert_int_equal(rtc.nvrtcGetCUBINSize(program, &bytes), NVRTC_OK);
    assert_true(bytes <= sizeof cubin);
    assert_int_equal(rtc.nvrtcGetCUBIN(program, cubin), NVRTC_OK);
    assert_string_equal(cubin, "virtual code of add for sm_120");
    assert_int_equal(rtc.nvrtcDestroyProgram(&program), NVRTC_OK);
    assert_null(program);
    close_gpu();
}
