#include "runtime/engine/gpu.h"

#include "runtime/base/put.h"
#include "runtime/base/units.h"
#include "runtime/device/cuda/errors.h"
#include "runtime/device/cuda/open.h"
#include "runtime/device/machine.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MOST_PROCESSES = 64 };

/* ---- NVML ------------------------------------------------------------------------------- */

static void nvml_tells_nothing(struct burin_gpu *gpu, const char *why)
{
    gpu->nvml_device = NULL;
    snprintf(gpu->nvml_missing, sizeof gpu->nvml_missing, "%.150s", why);
}

static bool nvml_memory(struct burin_gpu *gpu, struct burin_nvml_memory *memory)
{
    *memory = (struct burin_nvml_memory){ .version = BURIN_NVML_MEMORY };
    if (!gpu->nvml_device)
        return false;
    const int result = gpu->nvml.nvmlDeviceGetMemoryInfo_v2(gpu->nvml_device, memory);
    if (result)
        nvml_tells_nothing(gpu, gpu->nvml.nvmlErrorString(result));
    return !result;
}

/* It speaks of the card; under MIG the driver speaks of our part of it. */
static void check_nvml(struct burin_gpu *gpu)
{
    struct burin_nvml_memory memory;
    const double ours = (double)gpu->cuda.found.total;
    if (nvml_memory(gpu, &memory) &&
        ((double)memory.total > 1.25 * ours || (double)memory.total < 0.8 * ours))
        nvml_tells_nothing(gpu, "it speaks of a card, and we have a part of one");
}

static void find_nvml_device(struct burin_gpu *gpu)
{
    const int result = gpu->nvml.nvmlDeviceGetHandleByPciBusId_v2(
            gpu->cuda.found.pci, &gpu->nvml_device);
    if (result)
        nvml_tells_nothing(gpu, gpu->nvml.nvmlErrorString(result));
    else
        check_nvml(gpu);
}

static int read_processes(struct burin_gpu *gpu, struct burin_nvml_process *processes)
{
    unsigned n = MOST_PROCESSES;
    if (!gpu->nvml_device ||
        gpu->nvml.nvmlDeviceGetComputeRunningProcesses_v3(gpu->nvml_device, &n, processes))
        return 0;
    return n < MOST_PROCESSES ? (int)n : MOST_PROCESSES;
}

static bool is_told(const struct burin_nvml_process *process)
{
    return process->used != ~0ULL;
}

bool burin_gpu_used(struct burin_gpu *gpu, int64_t *bytes)
{
    struct burin_nvml_process processes[MOST_PROCESSES];
    const int n = read_processes(gpu, processes);
    *bytes = 0;
    for (int i = 0; i < n; i++)
        if (processes[i].pid == (unsigned)getpid()) {
            *bytes = (int64_t)processes[i].used;
            return is_told(&processes[i]);
        }
    return gpu->nvml_device && !gpu->has_context; /* nothing yet */
}

/* Where we are on the card and none of its processes has our number, any of them may be us. */
static bool are_others(
        const struct burin_gpu *gpu, const struct burin_nvml_process *processes, int n)
{
    bool listed = !gpu->has_context;
    for (int i = 0; i < n; i++)
        listed |= processes[i].pid == (unsigned)getpid();
    return listed;
}

void burin_gpu_others(struct burin_gpu *gpu, char *text, size_t capacity)
{
    struct burin_nvml_process processes[MOST_PROCESSES];
    int n = read_processes(gpu, processes);
    struct burin_put put = { text, capacity, 0 };
    text[0] = '\0';
    if (!are_others(gpu, processes, n))
        return;
    for (int shown = 0; shown < 3; shown++) {
        int most = -1;
        for (int i = 0; i < n; i++)
            if (processes[i].pid != (unsigned)getpid() && is_told(&processes[i]) &&
                (most < 0 || processes[i].used > processes[most].used))
                most = i;
        if (most < 0)
            return;
        char name[64] = "";
        if (gpu->nvml.nvmlSystemGetProcessName(processes[most].pid, name, sizeof name))
            name[0] = '\0';
        burin_put(
                &put, "%spid %u%s%.48s, %s", shown ? "; " : "", processes[most].pid,
                name[0] ? ", " : "", name,
                burin_human_bytes((int64_t)processes[most].used).text);
        processes[most] = processes[--n];
    }
}

/* ---- Open and close ---------------------------------------------------------------------- */

enum burin_status burin_gpu_open(struct burin_gpu *gpu, int index, struct burin_error *err)
{
    struct burin_error why = { 0 };
    *gpu = (struct burin_gpu){ .has_context = false };
    enum burin_status status = burin_driver_open(&gpu->driver, err);
    if (!status)
        status = burin_cuda_open(&gpu->cuda, &gpu->driver, index, err);
    if (status) {
        burin_driver_close(&gpu->driver);
        return status;
    }
    gpu->nvml_open = !burin_nvml_open(&gpu->nvml, &why);
    if (gpu->nvml_open)
        find_nvml_device(gpu);
    else
        nvml_tells_nothing(gpu, why.message);
    return BURIN_OK;
}

enum burin_status burin_gpu_open_tables(
        struct burin_gpu *gpu, int index, struct burin_error *err)
{
    gpu->has_context = false;
    enum burin_status status = burin_cuda_check(
            &gpu->driver, err, gpu->driver.cuInit(0), "cuInit", "a driver at hand");
    if (!status)
        status = burin_cuda_open(&gpu->cuda, &gpu->driver, index, err);
    if (status)
        return status;
    const int result = gpu->nvml.nvmlInit_v2();
    gpu->nvml_open = !result;
    if (gpu->nvml_open)
        find_nvml_device(gpu);
    else
        nvml_tells_nothing(gpu, gpu->nvml.nvmlErrorString(result));
    return BURIN_OK;
}

void burin_gpu_close(struct burin_gpu *gpu)
{
    if (gpu->cuda.driver)
        burin_cuda_close(&gpu->cuda);
    if (gpu->nvml_open && !gpu->nvml.library) /* a table's */
        gpu->nvml.nvmlShutdown();
    burin_nvml_close(&gpu->nvml);
    burin_nvrtc_close(&gpu->nvrtc);
    burin_cublaslt_close(&gpu->cublaslt);
    burin_driver_close(&gpu->driver);
    *gpu = (struct burin_gpu){ .has_context = false };
}

/* ---- Memory ------------------------------------------------------------------------------ */

/* Where it is the host's, the kernel would give up its page cache, and CUDA does not count it. */
static enum burin_status free_of_host(int64_t *available, struct burin_error *err)
{
    size_t bytes = 0, total = 0;
    const enum burin_status status = burin_machine_memory(&bytes, &total, err);
    *available = (int64_t)bytes;
    return status;
}

enum burin_status burin_gpu_free(
        struct burin_gpu *gpu, int64_t *available, struct burin_error *err)
{
    struct burin_nvml_memory memory;
    size_t bytes = 0, total = 0;
    if (gpu->cuda.found.integrated && !gpu->not_here)
        return free_of_host(available, err);
    if (gpu->has_context) {
        const enum burin_status status =
                burin_device_memory(&gpu->cuda.device, &bytes, &total, err);
        *available = (int64_t)bytes;
        return status;
    }
    *available = nvml_memory(gpu, &memory) ? (int64_t)memory.available : -1;
    return BURIN_OK;
}

enum burin_status burin_gpu_card(
        struct burin_gpu *gpu, struct burin_card *card, struct burin_error *err)
{
    const struct burin_cuda_found *found = &gpu->cuda.found;
    int64_t available = 0;
    const enum burin_status status = burin_gpu_free(gpu, &available, err);
    *card = (struct burin_card){
        .total_bytes = (int64_t)found->total,
        .available_bytes = (int64_t)found->total,
        .sm = found->sm,
        .n_processors = found->n_multiprocessors,
        .unified = found->integrated,
    };
    if (available >= 0 && available < card->total_bytes)
        card->available_bytes = available;
    snprintf(card->name, sizeof card->name, "%.31s", found->name);
    return status;
}
