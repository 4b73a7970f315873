/* runtime/engine/memory.h -- The device memory of an engine, taken as it was planned.
 *
 * On the CPU and on a counting device alike: what a plan says can be rehearsed on a device
 * that has the memory of another one and runs nothing.
 *
 * Memory   The ledger owns it.
 * Errors   BURIN_ENOMEM names the owner that does not fit; what others took stays theirs
 *          until the ledger is closed. */
#ifndef BURIN_ENGINE_MEMORY_H
#define BURIN_ENGINE_MEMORY_H

#include "runtime/base/status.h"
#include "runtime/device/ledger.h"
#include "runtime/plan/plan.h"

#include <stddef.h>
#include <stdint.h>

struct burin_memory_piece {
    uint64_t address;
    size_t bytes;
};

struct burin_memory {
    struct burin_memory_piece weights;
    struct burin_memory_piece arena;  /* of the largest program: they run one at a time */
    struct burin_memory_piece inputs; /* likewise, at their largest extents */
    struct burin_memory_piece cache;  /* of encoded pictures and sound, if any */
    struct burin_memory_piece slots;  /* per-sequence state, if any: on a GPU of 3 owners */
    struct burin_memory_piece kv;     /* the pages */
};

/* Open a ledger over `device` with a row for each owner of the plan. */
enum burin_status burin_memory_open_ledger(
        struct burin_ledger *ledger,
        struct burin_device *device,
        const struct burin_plan *plan,
        struct burin_error *err);

/* Take what the plan read off the tables. */
enum burin_status burin_memory_take(
        struct burin_memory *memory,
        struct burin_ledger *ledger,
        const struct burin_plan *plan,
        struct burin_error *err);

/* The same without "kv", whose address and bytes are filled in later. On a GPU the slots are what
 * "windows", "scans" and "drafts" have together. */
enum burin_status burin_memory_take_fixed(
        struct burin_memory *memory,
        struct burin_ledger *ledger,
        const struct burin_plan *plan,
        struct burin_error *err);

#endif
