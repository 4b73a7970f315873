/* The machine: opened, asked, closed. */
#include "runtime/device/virtual/virtual.h"

#include "runtime/base/put.h"
#include "runtime/device/virtual/state.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const size_t MIB = (size_t)1 << 20;

struct burin_virtual_options burin_virtual_default(const struct burin_card *card)
{
    return (struct burin_virtual_options){
        .n_cards = 1,
        .cards = { *card },
        .driver_version = 13000,
        .granule = 2 * MIB,
        .context_bytes = 555 * MIB,
        .module_bytes = MIB / 4,
        .node_bytes = MIB / 64,
    };
}

enum burin_status burin_virtual_open(
        struct burin_virtual **machine,
        const struct burin_virtual_options *options,
        struct burin_error *err)
{
    const size_t granule = options->granule;
    *machine = NULL;
    if (!granule || (granule & (granule - 1)) || options->n_cards > BURIN_VIRTUAL_CARDS)
        return burin_fail(
                err, BURIN_EUSAGE,
                "a virtual GPU's granule must be a power of two, not %zu; up to %d cards",
                granule, BURIN_VIRTUAL_CARDS);
    struct burin_arena arena = { 0 };
    struct burin_virtual *new = BURIN_TAKE(&arena, 1, struct burin_virtual);
    if (!new)
        return burin_fail(err, BURIN_ENOMEM, "the host has no memory for a virtual GPU");
    new->arena = arena;
    new->options = *options;
    new->body = options->body;
    new->random = options->seed;
    new->next_address = (uint64_t)1 << 44;
    for (int i = 0; i < options->n_cards; i++) {
        const struct burin_card *card = &options->cards[i];
        const size_t taken = card->available_bytes < card->total_bytes
                                     ? (size_t)(card->total_bytes - card->available_bytes)
                                     : 0;
        new->cards[i] = (struct burin_virtual_memory){
            .total = (size_t)card->total_bytes,
            .used = taken,
            .most_used = taken,
            .others = taken,
        };
        new->nvml[i].card = i;
    }
    for (int i = 0; i < BURIN_VIRTUAL_PROCESSES; i++) {
        new->processes[i].machine = new;
        burin_virtual_lock();
        new->processes[i].life = burin_virtual_life();
        burin_virtual_unlock();
    }
    burin_virtual_select(new, 0);
    *machine = new;
    return BURIN_OK;
}

void burin_virtual_select(struct burin_virtual *machine, int process)
{
    assert(process >= 0 && process < BURIN_VIRTUAL_PROCESSES);
    burin_virtual_lock();
    burin_virtual_set_self(&machine->processes[process]);
    burin_virtual_unlock();
}

void burin_virtual_end(struct burin_virtual *machine, int process)
{
    burin_virtual_lock();
    struct burin_virtual_process *self = burin_virtual_self();
    burin_virtual_set_self(&machine->processes[process]);
    burin_virtual_destroy_process();
    burin_virtual_set_self(self);
    burin_virtual_unlock();
}

void burin_virtual_close(struct burin_virtual *machine)
{
    if (!machine)
        return;
    for (int i = 0; i < BURIN_VIRTUAL_PROCESSES; i++)
        burin_virtual_end(machine, i);
    burin_virtual_lock();
    if (burin_virtual_self() && burin_virtual_self()->machine == machine)
        burin_virtual_set_self(NULL);
    burin_virtual_unlock();
    struct burin_arena arena = machine->arena; /* which the machine lies in */
    burin_arena_close(&arena);
}

void burin_virtual_tables(
        struct burin_driver *driver, struct burin_nvrtc *nvrtc, struct burin_nvml *nvml)
{
#define BURIN_ENTRY(name, ...) .name = BURIN_VIRTUAL(name),
    if (driver)
        *driver = (struct burin_driver){ BURIN_DRIVER_CALLS(BURIN_ENTRY).found =
                                                 "a virtual GPU" };
    if (nvrtc)
        *nvrtc = (struct burin_nvrtc){ BURIN_NVRTC_CALLS(BURIN_ENTRY).found =
                                               "a virtual GPU" };
    if (nvml)
        *nvml = (struct burin_nvml){ BURIN_NVML_CALLS(BURIN_ENTRY).library = NULL };
#undef BURIN_ENTRY
}

void burin_virtual_set_local(struct burin_virtual *machine, const char *kernel, int bytes)
{
    struct burin_virtual_local *local =
            BURIN_TAKE(&machine->arena, 1, struct burin_virtual_local);
    char *name = burin_arena_text(&machine->arena, kernel, strlen(kernel));
    assert(local && name);
    *local = (struct burin_virtual_local){ .next = machine->locals,
                                           .kernel = name,
                                           .bytes = bytes };
    machine->locals = local;
}

/* ---- What happened -------------------------------------------------------------------------- */

struct burin_virtual_counts burin_virtual_counts(const struct burin_virtual *machine)
{
    return machine->counts;
}

struct burin_virtual_memory burin_virtual_memory(
        const struct burin_virtual *machine, int card)
{
    return machine->cards[card];
}

static bool is_default_stream(const struct burin_virtual_item *item)
{
    return item->kind == BURIN_VIRTUAL_STREAM && item == &item->context->stream->item;
}

struct burin_virtual_held burin_virtual_held(
        const struct burin_virtual *machine, int process, enum burin_virtual_kind kind)
{
    const struct burin_virtual_process *of = &machine->processes[process];
    struct burin_virtual_held held = of->abandoned[kind];
    for (const struct burin_virtual_item *item = of->items[kind]; item; item = item->next)
        if (!is_default_stream(item)) {
            held.n++;
            held.bytes += item->bytes;
        }
    if (kind == BURIN_VIRTUAL_NVML)
        held.n += of->n_nvml;
    return held;
}

void burin_virtual_held_text(
        const struct burin_virtual *machine, char *text, size_t capacity)
{
    static const char *const names[BURIN_VIRTUAL_N_KINDS] = {
        [BURIN_VIRTUAL_CONTEXT] = "context",
        [BURIN_VIRTUAL_MODULE] = "module",
        [BURIN_VIRTUAL_STREAM] = "stream",
        [BURIN_VIRTUAL_EVENT] = "event",
        [BURIN_VIRTUAL_GRAPH] = "graph",
        [BURIN_VIRTUAL_EXEC] = "instantiated graph",
        [BURIN_VIRTUAL_MEMORY] = "allocation",
        [BURIN_VIRTUAL_HANDLE] = "handle",
        [BURIN_VIRTUAL_ADDRESSES] = "range of addresses",
        [BURIN_VIRTUAL_MAPPING] = "mapping",
        [BURIN_VIRTUAL_HOST] = "piece of pinned memory",
        [BURIN_VIRTUAL_PROGRAM] = "program of NVRTC",
        [BURIN_VIRTUAL_NVML] = "use of NVML",
    };
    struct burin_put put = { text, capacity, 0 };
    burin_put(&put, "%s", "");
    for (int kind = 0; kind < BURIN_VIRTUAL_N_KINDS; kind++) {
        struct burin_virtual_held all = { 0 };
        for (int i = 0; i < BURIN_VIRTUAL_PROCESSES; i++) {
            const struct burin_virtual_held held =
                    burin_virtual_held(machine, i, (enum burin_virtual_kind)kind);
            all.n += held.n;
            all.bytes += held.bytes;
        }
        if (!all.n)
            continue;
        burin_put(&put, "%s%d x %s", put.used ? ", " : "", all.n, names[kind]);
        if (all.bytes)
            burin_put(&put, " of %zu bytes", all.bytes);
    }
}
