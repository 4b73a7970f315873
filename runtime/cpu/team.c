/* runtime/cpu/team.c -- Waiting: spin for a short wait, offer the processor to others for a
 * longer one, sleep for a long one. */
#include "runtime/cpu/team.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Waits within a layer are mostly shorter than a wake-up by the kernel (5 to 50 us). With two
 * pauses a look threads fight for the line: 220 ns a barrier; with eight 110 (Zen 4). */
enum { SPIN_NS = 200000, N_LOOKS = 16, PAUSES_PER_LOOK = 8 };

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
static bool look_if_changed(struct burin_word *word, unsigned value)
{
    for (int look = 0; look < N_LOOKS; look++) {
        if (atomic_load_explicit(&word->value, memory_order_acquire) != value)
            return true;
        for (int i = 0; i < PAUSES_PER_LOOK; i++)
            pause_cpu();
    }
    return false;
}

/* True when it has changed, false when the time is up. The thread that we wait for may be
 * queued on this very processor: yielding lets it run, and since we stay runnable the
 * scheduler sees two threads here and moves one away. Threads that slept instead were woken
 * side by side on one of two idle processors, for seconds (87 tokens/s in place of 370). */
static bool spin(struct burin_word *word, unsigned value, int64_t spin_ns)
{
    if (look_if_changed(word, value))
        return true;

    const int64_t deadline = now_ns() + spin_ns;
    do {
        sched_yield();
        if (look_if_changed(word, value))
            return true;
    } while (now_ns() < deadline);
    return false;
}

/* The default order of these atomics (sequentially consistent) is needed: a sleeper counts
 * itself, then looks at the value; who changes it does so, then looks at the count. At least
 * one of them sees the other. */
void burin_word_wait(struct burin_word *word, unsigned value, int64_t spin_ns)
{
    if (spin(word, value, spin_ns))
        return;
    atomic_fetch_add(&word->sleepers, 1);
    while (atomic_load(&word->value) == value)
        syscall(SYS_futex, &word->value, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
    atomic_fetch_sub(&word->sleepers, 1);
}

void burin_word_wake(struct burin_word *word)
{
    if (atomic_load(&word->sleepers) > 0)
        syscall(SYS_futex, &word->value, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static void open_gate(struct burin_gate *gate, unsigned generation)
{
    atomic_store_explicit(&gate->arrived, 0, memory_order_relaxed);
    atomic_store(&gate->generation.value, generation + 1);
    burin_word_wake(&gate->generation);
}

void burin_barrier(const struct burin_team *team)
{
    struct burin_gate *gate = team->gate;

    if (team->n_threads == 1)
        return;

    /* It cannot move before this thread arrives. */
    const unsigned generation =
            atomic_load_explicit(&gate->generation.value, memory_order_relaxed);
    const unsigned before =
            atomic_fetch_add_explicit(&gate->arrived, 1, memory_order_acq_rel);

    if (before + 1 == (unsigned)team->n_threads)
        open_gate(gate, generation);
    else
        burin_word_wait(&gate->generation, generation, SPIN_NS);
}
