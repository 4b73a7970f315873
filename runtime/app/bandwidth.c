#include "runtime/app/bandwidth.h"

#include "runtime/base/clock.h"

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MIB = 1 << 20, LEAST_MIB = 256, MOST_MIB = 1024, PASSES = 7, MAX_THREADS = 256 };

/* 64 bytes at once, whatever the processor makes of them. */
typedef uint64_t line __attribute__((vector_size(64)));

/* Threads take pieces in turn: adjacent pieces read a fifth faster than two far halves. */
enum { PIECE = 256 * 1024, PIECE_LINES = PIECE / (int)sizeof(line) };

struct reader {
    const line *lines; /* of its first piece */
    size_t n_pieces;
    size_t stride; /* lines from a piece to its next */
    uint64_t sum;  /* keeps the reads alive */
};

#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
static void *
read_lines(void *argument)
{
    struct reader *reader = argument;
    line sums[8] = { { 0 } };
    for (size_t piece = 0; piece < reader->n_pieces; piece++) {
        const line *at = reader->lines + piece * reader->stride;
        for (size_t i = 0; i < PIECE_LINES; i += 8)
#pragma GCC unroll 8 /* or the sums lie in memory, not in registers */
            for (size_t k = 0; k < 8; k++)
                sums[k] ^= at[i + k];
    }
    uint64_t sum = 0;
    for (int k = 0; k < 8; k++)
        for (int lane = 0; lane < 8; lane++)
            sum ^= sums[k][lane];
    reader->sum = sum;
    return NULL;
}

size_t burin_cache_bytes(void)
{
    size_t most = 0;
    for (int i = 0; i < 8; i++) {
        char path[96], text[32] = "";
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        FILE *in = fopen(path, "r");
        if (!in)
            break;
        if (fgets(text, sizeof text, in)) {
            char *end;
            size_t bytes = strtoul(text, &end, 10);
            bytes <<= *end == 'K' ? 10 : *end == 'M' ? 20 : 0;
            if (bytes > most)
                most = bytes;
        }
        fclose(in);
    }
    return most;
}

static double one_pass(struct reader *readers, int n_threads, int *failed)
{
    pthread_t threads[MAX_THREADS];
    const double began_ms = burin_now_ms();
    int started = 1;
    while (started < n_threads &&
           !pthread_create(&threads[started], NULL, read_lines, &readers[started]))
        started++;
    *failed = started < n_threads;
    read_lines(&readers[0]);
    for (int i = 1; i < started; i++)
        pthread_join(threads[i], NULL);
    return burin_now_ms() - began_ms;
}

enum burin_status burin_bandwidth(int n_threads, double *gbs, struct burin_error *err)
{
    size_t bytes = 4 * burin_cache_bytes();
    bytes = bytes < (size_t)LEAST_MIB * MIB ? (size_t)LEAST_MIB * MIB : bytes;
    bytes = bytes > (size_t)MOST_MIB * MIB ? (size_t)MOST_MIB * MIB : bytes;
    if (n_threads > MAX_THREADS)
        n_threads = MAX_THREADS;

    void *buffer =
            mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer == MAP_FAILED)
        return burin_fail(
                err, BURIN_ENOMEM, "no memory for %zu bytes to time reading them", bytes);
    madvise(buffer, bytes, MADV_HUGEPAGE); /* as weights lie */
    memset(buffer, 1, bytes);

    struct reader readers[MAX_THREADS] = { { 0 } };
    const size_t each = bytes / PIECE / (size_t)n_threads;
    for (int i = 0; i < n_threads; i++)
        readers[i] =
                (struct reader){ .lines = (const line *)buffer + (size_t)i * PIECE_LINES,
                                 .n_pieces = each,
                                 .stride = (size_t)n_threads * PIECE_LINES };

    double least_ms = INFINITY;
    int failed = 0;
    for (int i = 0; i < PASSES && !failed; i++)
        least_ms = fmin(least_ms, one_pass(readers, n_threads, &failed));
    munmap(buffer, bytes);
    if (failed)
        return burin_fail(err, BURIN_EIO, "cannot start %d threads", n_threads);
    *gbs = (double)each * PIECE * n_threads / least_ms / 1e6;
    return BURIN_OK;
}
