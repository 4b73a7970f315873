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

void burin_ledger_begin(
        struct burin_ledger *ledger, struct burin_device *device, size_t bytes)
{
    *ledger = (struct burin_ledger){
        .device = device,
        .left = bytes / device->granule * device->granule,
    };
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

static enum burin_status no_piece(
        const struct burin_ledger *ledger, const char *owner, struct burin_error *err)
{
    if (ledger->n_pieces < BURIN_LEDGER_PIECES)
        return BURIN_OK;
    return burin_fail(
            err, BURIN_ELIMIT, "%s would hold piece %d of the ledger, it has room for %d",
            owner, ledger->n_pieces + 1, BURIN_LEDGER_PIECES);
}

static enum burin_status no_bytes(
        const struct burin_ledger *ledger,
        const char *owner,
        size_t bytes,
        struct burin_error *err)
{
    if (bytes <= ledger->left)
        return BURIN_OK;
    burin_fail(
            err, BURIN_ENOMEM, "%s needs %zu bytes, the device has %zu left", owner, bytes,
            ledger->left);
    if (err)
        err->on_device = true;
    return BURIN_ENOMEM;
}

/* Rows for the owner and for rounding, so that booking behind the device's yes cannot fail. */
static enum burin_status make_rows(
        struct burin_ledger *ledger,
        const char *owner,
        bool rounding,
        struct burin_error *err)
{
    if (!row(ledger, owner, err) || (rounding && !row(ledger, "rounding", err)))
        return BURIN_ELIMIT;
    return BURIN_OK;
}

static void book_taken(
        struct burin_ledger *ledger, const char *owner, size_t bytes, size_t rounded)
{
    add(ledger, row(ledger, owner, NULL), bytes);
    if (rounded > bytes)
        add(ledger, row(ledger, "rounding", NULL), rounded - bytes);
}

enum burin_status burin_ledger_take_together(
        struct burin_ledger *ledger,
        const char *const *owners,
        const size_t *bytes,
        int n,
        uint64_t *address,
        struct burin_error *err)
{
    const size_t granule = ledger->device->granule;
    size_t rounded[BURIN_LEDGER_TOGETHER] = { 0 };
    size_t sum = 0;
    enum burin_status status = BURIN_OK;
    if (n < 1 || n > BURIN_LEDGER_TOGETHER)
        return burin_fail(
                err, BURIN_ELIMIT, "%d owners of one piece, 1 to %d are possible", n,
                BURIN_LEDGER_TOGETHER);
    for (int i = 0; i < n && !status; i++) {
        if (ledger->sealed)
            return refuse_sealed(ledger, owners[i], bytes[i], err);
        status = refuse_unplanned(ledger, owners[i], bytes[i], err);
        if (!status && bytes[i] > SIZE_MAX / 2 - granule - sum)
            status = burin_fail(
                    err, BURIN_ENOMEM, "%s needs more than 2^63 bytes", owners[i]);
        rounded[i] = burin_round_up(bytes[i], granule);
        sum += rounded[i];
    }
    if (!status)
        status = no_bytes(ledger, owners[0], sum, err);
    if (!status)
        status = no_piece(ledger, owners[0], err);
    for (int i = 0; i < n && !status; i++)
        if (i == 0 || bytes[i])
            status = make_rows(ledger, owners[i], rounded[i] > bytes[i], err);
    if (status)
        return status;

    uint64_t obtained = 0;
    ledger->device->owner = owners[0];
    if (sum) {
        status = burin_device_obtain(ledger->device, sum, &obtained, err);
        if (status)
            return status;
        ledger->pieces[ledger->n_pieces].address = obtained;
        ledger->pieces[ledger->n_pieces].reserved = false;
        ledger->pieces[ledger->n_pieces++].bytes = sum;
    }
    ledger->left -= sum;
    for (int i = 0; i < n; i++)
        if (i == 0 || bytes[i])
            book_taken(ledger, owners[i], bytes[i], rounded[i]);
    *address = obtained;
    return BURIN_OK;
}

enum burin_status burin_ledger_take(
        struct burin_ledger *ledger,
        const char *owner,
        size_t bytes,
        uint64_t *address,
        struct burin_error *err)
{
    return burin_ledger_take_together(ledger, &owner, &bytes, 1, address, err);
}

enum burin_status burin_ledger_reserve(
        struct burin_ledger *ledger,
        const char *owner,
        size_t bytes,
        uint64_t *address,
        struct burin_error *err)
{
    const size_t rounded = burin_round_up(bytes, ledger->device->granule);
    if (ledger->sealed)
        return refuse_sealed(ledger, owner, bytes, err);
    enum burin_status status = no_piece(ledger, owner, err);
    if (!status)
        status = make_rows(ledger, owner, false, err);
    ledger->device->owner = owner;
    if (!status)
        status = burin_device_reserve(ledger->device, rounded, address, err);
    if (status)
        return status;
    ledger->pieces[ledger->n_pieces].address = *address;
    ledger->pieces[ledger->n_pieces].bytes = rounded;
    ledger->pieces[ledger->n_pieces].backed = 0;
    ledger->pieces[ledger->n_pieces++].reserved = true;
    return BURIN_OK;
}

enum burin_status burin_ledger_back(
        struct burin_ledger *ledger,
        const char *owner,
        uint64_t address,
        size_t bytes,
        struct burin_error *err)
{
    if (ledger->sealed)
        return refuse_sealed(ledger, owner, bytes, err);
    int i = 0;
    while (i < ledger->n_pieces &&
           (!ledger->pieces[i].reserved || ledger->pieces[i].address != address))
        i++;
    if (i == ledger->n_pieces || bytes > ledger->pieces[i].bytes - ledger->pieces[i].backed)
        return burin_fail(
                err, BURIN_EUSAGE, "%s has no addresses left for %zu bytes", owner, bytes);
    enum burin_status status = no_bytes(ledger, owner, bytes, err);
    ledger->device->owner = owner;
    if (!status)
        status = burin_device_back(
                ledger->device, address + ledger->pieces[i].backed, bytes, err);
    if (status)
        return status;
    ledger->pieces[i].backed += bytes;
    ledger->left -= bytes;
    book_taken(ledger, owner, bytes, bytes);
    return BURIN_OK;
}

void burin_ledger_return(
        struct burin_ledger *ledger, const char *owner, uint64_t address, size_t bytes)
{
    int i = 0;
    while (i < ledger->n_pieces && ledger->pieces[i].address != address)
        i++;
    if (i == ledger->n_pieces)
        return;
    const size_t rounded = ledger->pieces[i].bytes;
    burin_device_release(ledger->device, address, rounded);
    ledger->pieces[i] = ledger->pieces[--ledger->n_pieces];
    ledger->left += rounded;
    row(ledger, owner, NULL)->obtained -= bytes;
    if (rounded > bytes)
        row(ledger, "rounding", NULL)->obtained -= rounded - bytes;
}

enum burin_status burin_ledger_unused(
        struct burin_ledger *ledger,
        const char *owner,
        size_t bytes,
        struct burin_error *err)
{
    struct burin_owner *entry = row(ledger, owner, err);
    struct burin_owner *rounding = bytes ? row(ledger, "rounding", err) : entry;
    if (!entry || !rounding)
        return BURIN_ELIMIT;
    if (bytes > entry->obtained)
        return burin_fail(
                err, BURIN_EUSAGE, "%s has obtained %zu bytes, %zu cannot be unused", owner,
                entry->obtained, bytes);
    entry->obtained -= bytes;
    if (bytes)
        add(ledger, rounding, bytes);
    return BURIN_OK;
}

enum burin_status burin_ledger_spend(
        struct burin_ledger *ledger,
        const char *owner,
        size_t bytes,
        struct burin_error *err)
{
    struct burin_owner *entry = row(ledger, owner, err);
    if (!entry)
        return BURIN_ELIMIT;
    add(ledger, entry, bytes);
    ledger->left -= bytes < ledger->left ? bytes : ledger->left;
    ledger->left = ledger->left / ledger->device->granule * ledger->device->granule;
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
        (ledger->pieces[i].reserved ? burin_device_unreserve : burin_device_release)(
                ledger->device, ledger->pieces[i].address, ledger->pieces[i].bytes);
    *ledger = (struct burin_ledger){ 0 };
}
