/* tests/ops/prelude.h -- What a test program of kernels needs: threads, numbers, checks. */
#ifndef BURIN_TESTS_OPS_PRELUDE_H
#define BURIN_TESTS_OPS_PRELUDE_H

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/cpu/attention.h"
#include "runtime/cpu/kernel.h"
#include "runtime/cpu/team.h"

enum { MAX_THREADS = 16 };

typedef void team_run(const struct burin_team *t, void *context);

struct team_member {
    struct burin_team team;
    team_run *run;
    void *context;
};

static inline void *team_member_main(void *member)
{
    struct team_member *m = member;
    m->run(&m->team, m->context);
    return NULL;
}

/* Every thread of a team of n runs it; returns when all are done. */
static inline void on_team(int n_threads, team_run *run, void *context)
{
    struct burin_gate gate = { 0 };
    struct team_member members[MAX_THREADS];
    pthread_t threads[MAX_THREADS];

    for (int i = n_threads - 1; i >= 0; i--) {
        members[i] = (struct team_member){
            .team = { .thread = i, .n_threads = n_threads, .gate = &gate },
            .run = run,
            .context = context,
        };
        if (i > 0)
            pthread_create(&threads[i], NULL, team_member_main, &members[i]);
        else
            team_member_main(&members[0]);
    }
    for (int i = 1; i < n_threads; i++)
        pthread_join(threads[i], NULL);
}

/* The same numbers on every machine: Steele and Vigna's splitmix64. */
static inline uint64_t random_u64(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* About normal, deviation 1: twelve uniform ones. */
static inline float random_normal(uint64_t *state)
{
    double sum = -6.0;
    for (int i = 0; i < 12; i++)
        sum += (double)(random_u64(state) >> 11) * 0x1p-53;
    return (float)sum;
}

static inline void random_fill(float *x, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        x[i] = random_normal(&seed);
}

/* Zeroed and aligned to 64. */
static inline void *obtain(size_t bytes)
{
    bytes = (bytes + 63) / 64 * 64;
    void *at = aligned_alloc(64, bytes ? bytes : 64);
    if (!at)
        abort();
    return memset(at, 0, bytes);
}

static inline double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

#define CHECK(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                         \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

#endif
