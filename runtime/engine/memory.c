#include "runtime/engine/memory.h"

enum burin_status burin_memory_open_ledger(
        struct burin_ledger *ledger,
        struct burin_device *device,
        const struct burin_plan *plan,
        struct burin_error *err)
{
    enum burin_status status = burin_ledger_open(ledger, device, SIZE_MAX, err);
    for (int i = 0; i < plan->n_owners && !status; i++)
        status = burin_ledger_plan(
                ledger, plan->owners[i].name, (size_t)plan->owners[i].bytes, err);
    return status;
}

static enum burin_status take(
        struct burin_memory_piece *piece,
        struct burin_ledger *ledger,
        const struct burin_plan *plan,
        const char *owner,
        bool optional,
        struct burin_error *err)
{
    piece->bytes = (size_t)burin_plan_owner_bytes(plan, owner);
    if (optional && !piece->bytes)
        return BURIN_OK;
    return burin_ledger_take(ledger, owner, piece->bytes, &piece->address, err);
}

/* A slot holds a sequence's windows and states, one behind another. */
static enum burin_status take_slots(
        struct burin_memory_piece *piece,
        struct burin_ledger *ledger,
        const struct burin_plan *plan,
        struct burin_error *err)
{
    static const char *const all[] = { "slots", "windows", "scans", "drafts" };
    const char *owners[4];
    size_t bytes[4];
    int n = 0;
    for (int i = 0; i < 4; i++) {
        owners[n] = all[i];
        bytes[n] = (size_t)burin_plan_owner_bytes(plan, all[i]);
        piece->bytes += bytes[n];
        n += bytes[n] > 0;
    }
    return n ? burin_ledger_take_together(ledger, owners, bytes, n, &piece->address, err)
             : BURIN_OK;
}

enum burin_status burin_memory_take_fixed(
        struct burin_memory *memory,
        struct burin_ledger *ledger,
        const struct burin_plan *plan,
        struct burin_error *err)
{
    *memory = (struct burin_memory){ .arena = { 0 } };
    const struct {
        struct burin_memory_piece *piece;
        const char *owner;
        bool optional; /* not every model has it */
    } pieces[] = {
        { &memory->weights, "weights", false },
        { &memory->arena, "arena", false },
        { &memory->inputs, "inputs", false },
        { &memory->cache, "encoder cache", true },
    };
    enum burin_status status = BURIN_OK;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces && !status; i++)
        status = take(
                pieces[i].piece, ledger, plan, pieces[i].owner, pieces[i].optional, err);
    return status ? status : take_slots(&memory->slots, ledger, plan, err);
}

enum burin_status burin_memory_take(
        struct burin_memory *memory,
        struct burin_ledger *ledger,
        const struct burin_plan *plan,
        struct burin_error *err)
{
    const enum burin_status status = burin_memory_take_fixed(memory, ledger, plan, err);
    return status ? status : take(&memory->kv, ledger, plan, "kv", false, err);
}
