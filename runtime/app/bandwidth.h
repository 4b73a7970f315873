/* runtime/app/bandwidth.h -- How fast this machine reads memory: what a token's speed is
 * measured against.
 *
 * Threads  Starts its own and waits for them. */
#ifndef BURIN_APP_BANDWIDTH_H
#define BURIN_APP_BANDWIDTH_H

#include "runtime/base/status.h"

#include <stddef.h>

/* 10^9 bytes a second that `n_threads` read together from a buffer that no cache holds: the
 * best of several passes, for what is asked is what the memory can give. Takes a second or so,
 * and the buffer's memory while it lasts. */
enum burin_status burin_bandwidth(int n_threads, double *gbs, struct burin_error *err);

/* Bytes of the largest cache that the kernel tells of; 0 where it tells of none. */
size_t burin_cache_bytes(void);

#endif
