#include "runtime/device/ledger.h"

#include "runtime/base/round.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum burin_status burin_ledger_open(
        struct burin_ledger *ledger,
        struct burin_device *device,
        size_t limit,
        struct burin_error *err)
{
    size_t available = 0;
    size_t total = 0;
    const enum burin_status status = burin_device_memory(device, &available, &total, err);
    if (status)
        return status;

    const size_t ours = available < limit ? available : limit;
    *ledger = (struct burin_ledger){
        .device = device,
        .left = ours / device->granule * device->granule,
    };
    return BURIN_OK;
}

static int find(const struct burin_ledger *ledger, const char *owner)
{
    for (int i = 0; i < ledger->n_owners; i++)
        if (strcmp(ledger->owners[i].name, owner) == 0)
            return i;
    return -1;
}

/* The owner's row, a new one where it has none; NULL when the table is full. */
static struct burin_owner *row(
        struct burin_ledger *ledger, const char *owner, struct burin_error *err)
{
    const int at = find(ledger, owner);
    if (at >= 0)
        return &ledger->owners[at];
    if (ledger->n_owners == BURIN_LEDGER_OWNERS) {
        burin_fail(
                err, BURIN_ELIMIT, "%s would be owner %d of the ledger, it has rows for %d",
                owner, ledger->n_owners + 1, BURIN_LEDGER_OWNERS);
        return NULL;
    }
    ledger->owners[ledger->n_owners] = (struct burin_owner){ .name = owner };
    return &ledger->owners[ledger->n_owners++];
}

enum burin_status burin_ledger_plan(
        struct burin_ledger *ledger,
        const char *owner,
        size_t planned,
        struct burin_error *err)
{
    struct burin_owner *entry = row(ledger, owner, err);
    if (!entry)
        return BURIN_ELIMIT;
    entry->planned = planned;
    ledger->has_plan[entry - ledger->owners] = true;
    return BURIN_OK;
}

static enum burin_status refuse_sealed(
        const struct burin_ledger *ledger,
        const char *owner,
        size_t bytes,
        struct burin_error *err)
{
    if (!ledger->refuse_after_seal) {
        fprintf(stderr, "ledger: %s takes %zu bytes after seal\n", owner, bytes);
        abort();
    }
    return burin_fail(
            err, BURIN_ENOMEM, "%s needs %zu bytes after the memory was sealed", owner,
            bytes);
}

static enum burin_status refuse_unplanned(
        const struct burin_ledger *ledger,
        const char *owner,
        size_t bytes,
        struct burin_error *err)
{
    const int at = find(ledger, owner);
    if (at < 0 || !ledger->has_plan[at])
        return BURIN_OK;
    const struct burin_owner *entry = &ledger->owners[at];
    const size_t left = entry->planned - entry->obtained;
    if (bytes <= left)
        return BURIN_OK;
    return burin_fail(
            err, BURIN_ENOMEM, "%s needs %zu bytes, its plan of %zu has %zu left", owner,
            bytes, entry->planned, left);
}

static void add(struct burin_ledger *ledger, struct burin_owner *entry, size_t bytes)
{
    entry->obtained += bytes;
    if (!ledger->has_plan[entry - ledger->owners])
        entry->planned = entry->obtained;
}

enum burin_status burin_ledger_take(
        struct burin_ledger *ledger,
        const char *owner,
        size_t bytes,
        uint64_t *address,
        struct burin_error *err)
{
    if (ledger->sealed)
        return refuse_sealed(ledger, owner, bytes, err);
    enum burin_status status = refuse_unplanned(ledger, owner, bytes, err);
    if (status)
        return status;

    const size_t granule = ledger->device->granule;
    if (bytes > SIZE_MAX - granule)
        return burin_fail(err, BURIN_ENOMEM, "%s needs more than 2^64 bytes", owner);
    const size_t rounded = burin_round_up(bytes, granule);
    if (rounded > ledger->left)
        return burin_fail(
                err, BURIN_ENOMEM, "%s needs %zu bytes, the device has %zu left", owner,
                rounded, ledger->left);
    if (ledger->n_pieces == BURIN_LEDGER_PIECES)
        return burin_fail(
                err, BURIN_ELIMIT,
                "%s would hold piece %d of the ledger, it has room for %d", owner,
                ledger->n_pieces + 1, BURIN_LEDGER_PIECES);
    struct burin_owner *entry = row(ledger, owner, err);
    struct burin_owner *rounding = rounded > bytes ? row(ledger, "rounding", err) : NULL;
    if (!entry || (rounded > bytes && !rounding))
        return BURIN_ELIMIT;

    uint64_t obtained = 0;
    if (rounded) {
        ledger->device->owner = owner;
        status = burin_device_obtain(ledger->device, rounded, &obtained, err);
        if (status)
            return status;
        ledger->pieces[ledger->n_pieces].address = obtained;
        ledger->pieces[ledger->n_pieces++].bytes = rounded;
    }
    ledger->left -= rounded;
    add(ledger, entry, bytes);
    if (rounding)
        add(ledger, rounding, rounded - bytes);
    *address = obtained;
    return BURIN_OK;
}

enum burin_status burin_ledger_book(
        struct burin_ledger *ledger,
        const char *owner,
        size_t bytes,
        struct burin_error *err)
{
    if (ledger->sealed)
        return refuse_sealed(ledger, owner, bytes, err);
    const enum burin_status status = refuse_unplanned(ledger, owner, bytes, err);
    if (status)
        return status;
    struct burin_owner *entry = row(ledger, owner, err);
    if (!entry)
        return BURIN_ELIMIT;
    add(ledger, entry, bytes);
    return BURIN_OK;
}

void burin_ledger_seal(struct burin_ledger *ledger)
{
    ledger->sealed = true;
}

const struct burin_owner *burin_ledger_owner(
        const struct burin_ledger *ledger, const char *owner)
{
    const int at = find(ledger, owner);
    return at < 0 ? NULL : &ledger->owners[at];
}

void burin_ledger_close(struct burin_ledger *ledger)
{
    for (int i = ledger->n_pieces - 1; i >= 0; i--)
        burin_device_release(
                ledger->device, ledger->pieces[i].address, ledger->pieces[i].bytes);
    *ledger = (struct burin_ledger){ 0 };
}
