/* tests/runtime/cpu/test_team.c -- Shares of work, and the barrier between them. */
#include "runtime/cpu/team.h"
#include "tests/support/test.h"

#include <pthread.h>

enum { MAX_THREADS = 9, N_ROUNDS = 200 };

struct member {
    struct burin_team team;
    int *cells; /* one a thread */
    int n_stale;
};

/* Each round a thread writes its cell, then reads all of them. */
static void *write_wait_read(void *context)
{
    struct member *m = context;

    for (int round = 1; round <= N_ROUNDS; round++) {
        m->cells[m->team.thread] = round;
        burin_barrier(&m->team);
        for (int i = 0; i < m->team.n_threads; i++)
            m->n_stale += m->cells[i] != round;
        burin_barrier(&m->team);
    }
    return NULL;
}

SPEC(what_was_written_before_a_barrier_is_seen_after_it_also_with_more_threads_than_cores)
{
    for (int n = 1; n <= MAX_THREADS; n += 2) {
        struct burin_gate gate = { 0 };
        struct member members[MAX_THREADS] = { 0 };
        pthread_t threads[MAX_THREADS];
        int cells[MAX_THREADS] = { 0 };

        for (int i = 0; i < n; i++) {
            members[i].team = (struct burin_team){ i, n, &gate };
            members[i].cells = cells;
            assert_int_equal(
                    pthread_create(&threads[i], NULL, write_wait_read, &members[i]), 0);
        }

        for (int i = 0; i < n; i++) {
            pthread_join(threads[i], NULL);
            assert_int_equal(members[i].n_stale, 0);
        }
    }
}

SPEC(shares_are_adjacent_cover_everything_and_differ_by_one_at_most)
{
    for (int n_threads = 1; n_threads <= MAX_THREADS; n_threads++)
        for (int n = 0; n <= 40; n++) {
            int at = 0;

            for (int i = 0; i < n_threads; i++) {
                const struct burin_team team = { .thread = i, .n_threads = n_threads };
                const struct burin_share share = burin_share(&team, n);
                assert_int_equal(share.begin, at);
                assert_in_range(share.end - share.begin, n / n_threads, n / n_threads + 1);
                at = share.end;
            }
            assert_int_equal(at, n);
        }
}
