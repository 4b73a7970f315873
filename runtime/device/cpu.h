/* runtime/device/cpu.h -- This machine as a device: host memory, and a team of threads.
 *
 * Use      burin_cpu_open() gives a device that has memory; burin_cpu_start() the threads,
 *          whose stacks come from the ledger over that device.
 * Memory   Pieces of 2 MiB and more begin on 2 MiB and ask for huge pages: a step reads the
 *          weights once through, so every small page would cost a walk of the page table.
 * Threads  Thread 0 of the team is the caller of burin_queue_run(), which returns when all
 *          are done. Between programs the others spin for some microseconds, then sleep. */
#ifndef BURIN_DEVICE_CPU_H
#define BURIN_DEVICE_CPU_H

#include "runtime/base/status.h"
#include "runtime/cpu/team.h"
#include "runtime/device/device.h"
#include "runtime/device/ledger.h"

#include <stddef.h>
#include <stdint.h>

enum { BURIN_CPU_PAGE = 4096, BURIN_CPU_HUGE_PAGE = 2 * 1024 * 1024 };

/* What every thread of the team calls, with the same argument. */
typedef void burin_cpu_work(const struct burin_team *team, void *argument);

struct burin_cpu {
    struct burin_device device;
    int n_threads;

    /* Private. */
    int n_started; /* of the threads but the caller's */
    uint8_t *stacks;
    size_t stack_bytes;
    struct burin_gate gate;
    struct burin_word begun; /* counts the pieces of work given out */
    struct burin_word busy;  /* threads that have not finished the last one */
    burin_cpu_work *work;    /* NULL ends the threads */
    void *argument;
};

/* It has one thread, the caller's, until burin_cpu_start(). It must not be moved then. */
void burin_cpu_open(struct burin_cpu *cpu);

/* Start n_threads - 1 threads on stacks of `stack_bytes` each (a multiple of the page, which
 * includes a guard page), all taken for the owner "threads". BURIN_EUSAGE unless n_threads is
 * 1 ... BURIN_MAX_THREADS (plan.h). */
enum burin_status burin_cpu_start(
        struct burin_cpu *cpu,
        struct burin_ledger *ledger,
        int n_threads,
        size_t stack_bytes,
        struct burin_error *err);

/* Let all threads run `work`, the caller's too; returns when the last is done. */
void burin_cpu_run(struct burin_cpu *cpu, burin_cpu_work *work, void *argument);

/* End the threads; the ledger still holds their stacks. Stopping twice, or a zeroed struct,
 * does nothing. */
void burin_cpu_stop(struct burin_cpu *cpu);

#endif
