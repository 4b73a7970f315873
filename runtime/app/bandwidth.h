/* runtime/app/bandwidth.h -- How fast this machine reads memory: what a token's speed is
 * measured against.
 *
 * Threads  Starts its own and waits for them. */
#ifndef BURIN_APP_BANDWIDTH_H
#define BURIN_APP_BANDWIDTH_H

#include "runtime/base/status.h"

/* 10^9 bytes a second that `n_threads` read together from a buffer that no cache holds: the
 * median of several passes. Takes a second or so, and the buffer's memory while it lasts. */
enum burin_status burin_bandwidth(int n_threads, double *gbs, struct burin_error *err);

#endif
