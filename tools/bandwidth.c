/* tools/bandwidth.c -- What this machine reads from memory: the yardstick of decode.
 *
 *   cc -O2 -march=native -pthread tools/bandwidth.c -o bandwidth && ./bandwidth THREADS
 *
 * Prints GB/s (10^9 bytes), the median of 9 passes over 512 MiB in huge pages. Threads take
 * 256 KiB pieces in turn, the way that is fastest where two cores share the controllers.
 * tools/bench_peers runs it between the measurements that it judges. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { PASSES = 9, MAX_THREADS = 64 };
static const size_t total = (size_t)512 << 20;
static const size_t piece = (size_t)256 << 10;

typedef uint64_t vector __attribute__((vector_size(64)));

static const char *memory;
static int n_threads;
static pthread_barrier_t gate;
static double pass_seconds[PASSES];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *reader(void *index)
{
    const size_t thread = (size_t)(intptr_t)index;
    vector sum[4] = { 0 };
    for (int pass = 0; pass < PASSES; pass++) {
        pthread_barrier_wait(&gate);
        const double begin = now();
        for (size_t at = thread * piece; at < total; at += (size_t)n_threads * piece) {
            const vector *in = (const vector *)(memory + at);
            for (size_t i = 0; i < piece / sizeof *in; i += 4)
                for (int lane = 0; lane < 4; lane++)
                    sum[lane] ^= in[i + (size_t)lane];
        }
        pthread_barrier_wait(&gate); /* the slowest decides */
        if (thread == 0)
            pass_seconds[pass] = now() - begin;
    }
    const vector all = sum[0] ^ sum[1] ^ sum[2] ^ sum[3];
    return (void *)(uintptr_t)(all[0] & 1); /* or the loop would be dropped */
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    n_threads = argc > 1 ? atoi(argv[1]) : 1;
    if (n_threads < 1 || n_threads > MAX_THREADS)
        return 2;
    uint64_t *words =
            mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (words == MAP_FAILED)
        return 1;
    madvise(words, total, MADV_HUGEPAGE);
    for (size_t i = 0; i < total / sizeof *words; i++)
        words[i] = i;
    memory = (const char *)words;

    pthread_t threads[MAX_THREADS];
    pthread_barrier_init(&gate, NULL, (unsigned)n_threads);
    for (int i = 0; i < n_threads; i++)
        pthread_create(&threads[i], NULL, reader, (void *)(intptr_t)i);
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);

    qsort(pass_seconds, PASSES, sizeof *pass_seconds, ascending);
    printf("%.2f\n", 1e-9 * (double)total / pass_seconds[PASSES / 2]);
    return 0;
}
