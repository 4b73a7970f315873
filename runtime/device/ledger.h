/* runtime/device/ledger.h -- The only way to obtain device memory, and the account of it.
 *
 * Units    Bytes. `planned` is what the generator's tables say; `obtained` is what was taken
 *          of it. What the device's granule adds is an owner of its own, "rounding".
 * Left     Only what is taken here counts, never what the device has less than before: another
 *          process may take or give back at any time.
 * Memory   The ledger owns what it hands out and gives it back in burin_ledger_close().
 *          An owner's name is a static string; entries hold the pointer.
 * Threads  One thread until seal; read-only and free to share after it.
 * Why      Memory obtained while serving can fail half-way through a request, and moves
 *          addresses that captured graphs have baked in. */
#ifndef BURIN_DEVICE_LEDGER_H
#define BURIN_DEVICE_LEDGER_H

#include "runtime/base/status.h"
#include "runtime/device/device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct burin_owner {
    const char *name;
    size_t planned;
    size_t obtained;
};

enum { BURIN_LEDGER_OWNERS = 16, BURIN_LEDGER_PIECES = 32 };

struct burin_ledger {
    struct burin_device *device;
    size_t left; /* bytes of the device that nobody has taken, in whole granules */
    bool sealed;
    bool refuse_after_seal; /* false: taking after seal aborts */
    int n_owners;
    struct burin_owner owners[BURIN_LEDGER_OWNERS];
    bool has_plan[BURIN_LEDGER_OWNERS]; /* parallel: burin_ledger_plan() was told */
    int n_pieces;
    struct {
        uint64_t address;
        size_t bytes;
        bool reserved; /* addresses, the first `backed` bytes of them with memory */
        size_t backed;
    } pieces[BURIN_LEDGER_PIECES];
};

/* An account over what `device` has left at this moment. `limit` is how much of it is ours;
 * SIZE_MAX for all. */
enum burin_status burin_ledger_open(
        struct burin_ledger *ledger,
        struct burin_device *device,
        size_t limit,
        struct burin_error *err);

/* The same over `bytes` of it, whatever it has left at this moment: where that is less, it is the
 * device that refuses. */
void burin_ledger_begin(
        struct burin_ledger *ledger, struct burin_device *device, size_t bytes);

/* Say beforehand what `owner` will take. Without it, its plan is what it takes. */
enum burin_status burin_ledger_plan(
        struct burin_ledger *ledger,
        const char *owner,
        size_t planned,
        struct burin_error *err);

/* Obtain `bytes`, zeroed, for `owner`. BURIN_ENOMEM says who asked, for how much and what is
 * left, also where an owner goes beyond its plan; nothing has changed then. After seal this
 * is our bug: it aborts, naming owner, or is refused where refuse_after_seal is set. */
enum burin_status burin_ledger_take(
        struct burin_ledger *ledger,
        const char *owner,
        size_t bytes,
        uint64_t *address,
        struct burin_error *err);

/* The same as one piece for several owners, the first bytes[0] for owners[0]: as many granules
 * as if each had its own. Owners without bytes are left out. */
enum { BURIN_LEDGER_TOGETHER = 4 };
enum burin_status burin_ledger_take_together(
        struct burin_ledger *ledger,
        const char *const *owners,
        const size_t *bytes,
        int n,
        uint64_t *address,
        struct burin_error *err);

/* Addresses for `bytes`, rounded up to granules, without memory. */
enum burin_status burin_ledger_reserve(
        struct burin_ledger *ledger,
        const char *owner,
        size_t bytes,
        uint64_t *address,
        struct burin_error *err);

/* Obtain memory for the next `bytes`, whole granules, of what was reserved at `address`, also
 * beyond the owner's plan. BURIN_ENOMEM where the device or the ledger has less left; nothing
 * has changed then. */
enum burin_status burin_ledger_back(
        struct burin_ledger *ledger,
        const char *owner,
        uint64_t address,
        size_t bytes,
        struct burin_error *err);

/* Give back the one piece of `bytes` that an owner took at `address`. */
void burin_ledger_return(
        struct burin_ledger *ledger, const char *owner, uint64_t address, size_t bytes);

/* Of what an owner has obtained, `bytes` are not used: they are the granule's. */
enum burin_status burin_ledger_unused(
        struct burin_ledger *ledger,
        const char *owner,
        size_t bytes,
        struct burin_error *err);

/* Book what the device's driver has taken by itself: it counts, up to all that is left and
 * also beyond the owner's plan. */
enum burin_status burin_ledger_spend(
        struct burin_ledger *ledger,
        const char *owner,
        size_t bytes,
        struct burin_error *err);

/* Book `bytes` that came from elsewhere (an arena of base/, a library) to `owner`. */
enum burin_status burin_ledger_book(
        struct burin_ledger *ledger,
        const char *owner,
        size_t bytes,
        struct burin_error *err);

/* From here on nothing more is taken. */
void burin_ledger_seal(struct burin_ledger *ledger);

/* The row of an owner, or NULL. */
const struct burin_owner *burin_ledger_owner(
        const struct burin_ledger *ledger, const char *owner);

/* Give everything back to the device. Closing a zeroed ledger does nothing. */
void burin_ledger_close(struct burin_ledger *ledger);

#endif
