/* runtime/cpu/team.h -- Threads that run one program together.
 *
 * Every thread runs the same function with its own struct burin_team, takes its share of the
 * rows or tiles, and waits at burin_barrier() where one operation reads what another wrote.
 *
 * Threads  burin_barrier() spins for some microseconds, then sleeps on a futex; between
 *          programs the threads sleep (runtime/device/cpu.c).
 * Why      Work is split by index alone, never by who is idle: the same bits on any count. */
#ifndef BURIN_CPU_TEAM_H
#define BURIN_CPU_TEAM_H

#include <stdatomic.h>
#include <stdint.h>

/* A number that some threads change and others wait for. */
struct burin_word {
    _Alignas(64) atomic_uint value;
    atomic_uint sleepers;
};

struct burin_gate { /* one a team */
    _Alignas(64) atomic_uint arrived;
    struct burin_word generation;
};

struct burin_team {
    int thread; /* 0 ... n_threads - 1 */
    int n_threads;
    struct burin_gate *gate;
};

struct burin_share {
    int begin;
    int end;
};

/* This thread's part of n things: adjacent, equal to within one. */
static inline struct burin_share burin_share(const struct burin_team *t, int n)
{
    return (struct burin_share){
        .begin = (int)((long long)n * t->thread / t->n_threads),
        .end = (int)((long long)n * (t->thread + 1) / t->n_threads),
    };
}

/* All threads arrive before any goes on; what was written before is seen after. */
void burin_barrier(const struct burin_team *team);

/* Return when the word is no longer `value`: look for `spin_ns` nanoseconds, then sleep. */
void burin_word_wait(struct burin_word *word, unsigned value, int64_t spin_ns);

/* To be called behind every change of a word that others wait for. */
void burin_word_wake(struct burin_word *word);

#endif
