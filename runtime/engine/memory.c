#include "runtime/engine/memory.h"

#include "runtime/plan/size.h"

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
        const char *owner,
        size_t bytes,
        struct burin_error *err)
{
    piece->bytes = bytes;
    return burin_ledger_take(ledger, owner, bytes, &piece->address, err);
}

enum burin_status burin_memory_take(
        struct burin_memory *memory,
        struct burin_ledger *ledger,
        const struct burin_plan *plan,
        struct burin_error *err)
{
    const struct burin_family *family = plan->family;
    size_t arena = 0;
    size_t inputs = 0;
    size_t kv = 0;

    for (int i = 0; i < family->n_programs; i++) {
        const struct burin_program *program = &family->programs[i];
        const size_t own = burin_arena_bytes(program, &plan->params, plan->n);
        const size_t fixed = burin_inputs_bytes(program, &plan->params, plan->n);
        arena = own > arena ? own : arena;
        inputs = fixed > inputs ? fixed : inputs;
    }
    if (plan->kv)
        kv = plan->kv->page_bytes * (size_t)plan->n_pages +
             plan->kv->bytes_per_sequence * (size_t)plan->n_sequences;

    *memory = (struct burin_memory){ .arena = { 0 } };
    enum burin_status status =
            take(&memory->weights, ledger, "weights", family->weights_bytes, err);
    if (!status)
        status = take(&memory->arena, ledger, "arena", arena, err);
    if (!status)
        status = take(&memory->inputs, ledger, "inputs", inputs, err);
    if (!status)
        status = take(&memory->kv, ledger, "kv", kv, err);
    return status;
}
