/* What all processes together have of a card's memory. */
#include "runtime/device/virtual/state.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
};

const char *BURIN_VIRTUAL(nvmlErrorString)(int result)
{
    switch (result) {
    case NVML_OK:
        return "Success";
    case NVML_UNINITIALIZED:
        return "Uninitialized";
    case NVML_INVALID_ARGUMENT:
        return "Invalid Argument";
    case NVML_NOT_SUPPORTED:
        return "Not Supported";
    case NVML_NO_PERMISSION:
        return "Insufficient Permissions";
    case NVML_NOT_FOUND:
        return "Not Found";
    case NVML_INSUFFICIENT_SIZE:
        return "Insufficient Size";
    default:
        return "Unknown Error";
    }
}

CALL(nvmlInit_v2, NO_DRIVER, (void), ())
{
    burin_virtual_self()->n_nvml++;
    return NVML_OK;
}

CALL(nvmlShutdown, NO_DRIVER | GIVES_BACK, (void), ())
{
    if (!burin_virtual_self()->n_nvml)
        return NVML_UNINITIALIZED;
    burin_virtual_self()->n_nvml--;
    return NVML_OK;
}

CALL(nvmlSystemGetDriverVersion,
     NO_DRIVER,
     (char *version, unsigned length),
     (version, length))
{
    if (!burin_virtual_self()->n_nvml)
        return NVML_UNINITIALIZED;
    snprintf(version, length, "virtual");
    return NVML_OK;
}

CALL(nvmlDeviceGetHandleByPciBusId_v2,
     NO_DRIVER,
     (const char *id, struct burin_nvml_device **device),
     (id, device))
{
    struct burin_virtual *machine = burin_virtual_self()->machine;
    if (!burin_virtual_self()->n_nvml)
        return NVML_UNINITIALIZED;
    for (int card = 0; card < machine->options.n_cards; card++) {
        char own[24];
        snprintf(own, sizeof own, "0000:%02x:00.0", (unsigned)card + 1);
        const size_t n = strlen(id);
        if (n < strlen(own) || strcmp(id + n - strlen(own), own) != 0)
            continue; /* it may be asked for with 8 digits */
        *device = &machine->nvml[card];
        return NVML_OK;
    }
    return NVML_NOT_FOUND;
}

static int check(const struct burin_nvml_device *device)
{
    if (!burin_virtual_self()->n_nvml)
        return NVML_UNINITIALIZED;
    return device ? NVML_OK : NVML_INVALID_ARGUMENT;
}

CALL(nvmlDeviceGetMemoryInfo_v2,
     NO_DRIVER,
     (struct burin_nvml_device * device, struct burin_nvml_memory *memory),
     (device, memory))
{
    const int result = check(device);
    if (result || memory->version != BURIN_NVML_MEMORY)
        return result ? result : NVML_INVALID_ARGUMENT;
    const struct burin_virtual_memory *card =
            &burin_virtual_self()->machine->cards[device->card];
    memory->total = card->total;
    memory->reserved = 0;
    memory->used = card->used;
    memory->available = card->total - card->used;
    return NVML_OK;
}

enum { NEIGHBOUR = BURIN_VIRTUAL_PROCESSES, N_PIDS };

/* The process that is served has our number, the others have the next; all of them are others'
 * numbers where ours are our own. */
static unsigned pid_of(int process)
{
    const struct burin_virtual_process *self = burin_virtual_self();
    const int own = (int)(self - self->machine->processes);
    const unsigned first =
            (unsigned)getpid() + (self->machine->options.foreign_pids ? 7 : 0);
    return first + (unsigned)((process - own + N_PIDS) % N_PIDS);
}

CALL(nvmlDeviceGetComputeRunningProcesses_v3,
     NO_DRIVER,
     (struct burin_nvml_device * device, unsigned *n, struct burin_nvml_process *processes),
     (device, n, processes))
{
    const int result = check(device);
    if (result)
        return result;
    const struct burin_virtual_memory *card =
            &burin_virtual_self()->machine->cards[device->card];
    unsigned found = 0;
    for (int i = 0; i <= NEIGHBOUR; i++) {
        const size_t used = i == NEIGHBOUR ? card->others : card->ours[i];
        if (!used)
            continue;
        if (found < *n && processes)
            processes[found] =
                    (struct burin_nvml_process){ .pid = pid_of(i), .used = used };
        found++;
    }
    const bool fits = found <= *n;
    *n = found;
    return fits ? NVML_OK : NVML_INSUFFICIENT_SIZE;
}

CALL(nvmlSystemGetProcessName,
     NO_DRIVER,
     (unsigned pid, char *name, unsigned length),
     (pid, name, length))
{
    if (!burin_virtual_self()->n_nvml)
        return NVML_UNINITIALIZED;
    for (int i = 0; i <= NEIGHBOUR; i++)
        if (pid == pid_of(i)) {
            snprintf(name, length, i == NEIGHBOUR ? "neighbour" : "burin");
            return NVML_OK;
        }
    return NVML_NOT_FOUND;
}
