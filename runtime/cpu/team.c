/* runtime/cpu/team.c -- The barrier of a team: spin for a short wait, sleep for a long one. */
#include "runtime/cpu/team.h"

#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Waits within a layer are mostly shorter than a wake-up by the kernel (5 to 50 us). With two
 * pauses a look threads fight for the line: 220 ns a barrier; with eight 110 (Zen 4). */
enum { SPIN_NS = 20000, N_LOOKS = 16, PAUSES_PER_LOOK = 8 };

static void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Some looks, about a microsecond. */
static bool look_if_open(struct burin_gate *gate, unsigned generation)
{
    for (int look = 0; look < N_LOOKS; look++) {
        if (atomic_load_explicit(&gate->generation, memory_order_acquire) != generation)
            return true;
        for (int i = 0; i < PAUSES_PER_LOOK; i++)
            pause_cpu();
    }
    return false;
}

/* True when the gate has gone on from `generation`, false when the time is up. */
static bool spin_until_open(struct burin_gate *gate, unsigned generation)
{
    if (look_if_open(gate, generation))
        return true;

    const int64_t deadline = now_ns() + SPIN_NS;
    do {
        if (look_if_open(gate, generation))
            return true;
    } while (now_ns() < deadline);
    return false;
}

/* The default order of these atomics (sequentially consistent) is needed: a sleeper counts
 * itself, then looks at the generation; the opener moves the generation, then looks at the
 * count. At least one of them sees the other. */
static void sleep_until_open(struct burin_gate *gate, unsigned generation)
{
    atomic_fetch_add(&gate->sleepers, 1);
    while (atomic_load(&gate->generation) == generation)
        syscall(SYS_futex, &gate->generation, FUTEX_WAIT_PRIVATE, generation, NULL, NULL,
                0);
    atomic_fetch_sub(&gate->sleepers, 1);
}

static void open_gate(struct burin_gate *gate, unsigned generation)
{
    atomic_store_explicit(&gate->arrived, 0, memory_order_relaxed);
    atomic_store(&gate->generation, generation + 1);
    if (atomic_load(&gate->sleepers) > 0)
        syscall(SYS_futex, &gate->generation, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

void burin_barrier(const struct burin_team *team)
{
    struct burin_gate *gate = team->gate;

    if (team->n_threads == 1)
        return;

    /* It cannot move before this thread arrives. */
    const unsigned generation =
            atomic_load_explicit(&gate->generation, memory_order_relaxed);
    const unsigned before =
            atomic_fetch_add_explicit(&gate->arrived, 1, memory_order_acq_rel);

    if (before + 1 == (unsigned)team->n_threads)
        open_gate(gate, generation);
    else if (!spin_until_open(gate, generation))
        sleep_until_open(gate, generation);
}
