/* runtime/device/machine.h -- What this machine is: cores and memory that we may use, what
 * its processor has, and which of a model's families suits it.
 *
 * Units    Bytes.
 * Threads  Pure readers of /proc and /sys; nothing is allocated. */
#ifndef BURIN_DEVICE_MACHINE_H
#define BURIN_DEVICE_MACHINE_H

#include "runtime/base/status.h"
#include "runtime/model.h"
#include "runtime/plan/plan.h"

#include <stdbool.h>
#include <stddef.h>

/* Physical cores in our affinity mask, not more than a cgroup's quota allows; at least 1.
 * A second hyperthread of a core adds nothing to programs that wait for memory. */
int burin_machine_cores(void);

/* Processors that may run at once, hyperthreads among them: more threads only wait. */
int burin_machine_processors(void);

/* Of this machine, or of the cgroup that we are in, or of our address space (ulimit -v) where
 * that is less. `available` counts page cache that the kernel would give up. */
enum burin_status burin_machine_memory(
        size_t *available, size_t *total, struct burin_error *err);

/* The same, as the card of a plan. */
enum burin_status burin_machine_card(struct burin_card *card, struct burin_error *err);

/* Whether processor and operating system have it. */
bool burin_machine_has(enum burin_cpu_feature feature);

/* What --device names: the number of a GPU, 0 for "cuda" and 1 for "cuda:1", or one of these for "cpu"
 * and "auto". BURIN_EUSAGE, by the name of the option or variable that it stands behind, where no
 * device is called so. */
enum { BURIN_DEVICE_CPU = -1, BURIN_DEVICE_AUTO = -2 };
enum burin_status burin_machine_device(
        const char *option, const char *text, int *device, struct burin_error *err);

/* The first family that this processor runs: named `target`, or any where that is NULL.
 * BURIN_EUSAGE names the families that there are, of GPUs too, or what the processor lacks. */
enum burin_status burin_machine_family(
        const struct burin_model *model,
        const char *target,
        bool exact,
        const struct burin_family **family,
        struct burin_error *err);

#endif
