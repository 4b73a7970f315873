/* runtime/device/counting.h -- A device with a set amount of memory that counts, and runs
 * nothing: the second implementation of device.h, for tests and for a plan's rehearsal.
 *
 * Memory   Addresses are numbers, from 2^32 up, never given twice; no byte lies behind them.
 * Order    Everything is done when it is put on the queue; events count the work before. */
#ifndef BURIN_DEVICE_COUNTING_H
#define BURIN_DEVICE_COUNTING_H

#include "runtime/device/device.h"

#include <stddef.h>
#include <stdint.h>

enum { BURIN_COUNTING_RANGES = 4 };

/* Addresses, and how much memory is behind them. */
struct burin_counting_range {
    uint64_t address;
    size_t bytes; /* 0: free to be reserved */
    size_t backed;
    int n_pieces;
};

struct burin_counting {
    struct burin_device device;
    size_t total;
    size_t used;
    size_t most_used;
    uint64_t next_address;
    int n_buffers; /* obtained and not yet released */
    struct burin_counting_range ranges[BURIN_COUNTING_RANGES];
    int n_queues;
    int n_copies;
    size_t bytes_copied;
    int n_runs;
    struct burin_call last_call;
    int fail_in; /* obtain() number so many fails, counted from 1; 0: none does */
};

void burin_counting_open(struct burin_counting *counting, size_t total, size_t granule);

#endif
