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
        struct burin_error *err)
{
    piece->bytes = (size_t)burin_plan_owner_bytes(plan, owner);
    return burin_ledger_take(ledger, owner, piece->bytes, &piece->address, err);
}

enum burin_status burin_memory_take(
        struct burin_memory *memory,
        struct burin_ledger *ledger,
        const struct burin_plan *plan,
        struct burin_error *err)
{
    *memory = (struct burin_memory){ .arena = { 0 } };
    enum burin_status status = take(&memory->weights, ledger, plan, "weights", err);
    if (!status)
        status = take(&memory->arena, ledger, plan, "arena", err);
    if (!status)
        status = take(&memory->inputs, ledger, plan, "inputs", err);
    if (!status)
        status = take(&memory->kv, ledger, plan, "kv", err);
    return status;
}
