/* What happens at a chosen call: a fault, a neighbour's move. And the account of calls. */
#include "runtime/device/virtual/state.h"

#include <assert.h>
#include <string.h>

#define BURIN_NAME(name, ...) #name,
static const char *const names[] = { BURIN_DRIVER_CALLS(BURIN_NAME) BURIN_NVRTC_CALLS(
        BURIN_NAME) BURIN_NVML_CALLS(BURIN_NAME) };
#undef BURIN_NAME

const char *burin_virtual_call_name(int id)
{
    return id >= 0 && id < N_CALLS ? names[id] : NULL;
}

enum burin_virtual_call_id burin_virtual_call_id(const char *name)
{
    int id = 0;
    while (id < N_CALLS && strcmp(names[id], name) != 0)
        id++;
    return (enum burin_virtual_call_id)id;
}

/* Up to what is free, and not below nothing. */
static void move(struct burin_virtual *machine, int card, int64_t bytes)
{
    struct burin_virtual_memory *memory = &machine->cards[card];
    if (bytes >= 0) {
        const size_t left = burin_virtual_left(machine, card);
        const size_t taken = (size_t)bytes < left ? (size_t)bytes : left;
        memory->others += taken;
        memory->used += taken;
    } else {
        const size_t wanted = (size_t)-bytes;
        const size_t given = wanted < memory->others ? wanted : memory->others;
        memory->others -= given;
        memory->used -= given;
    }
    if (memory->most_used < memory->used)
        memory->most_used = memory->used;
}

static bool is_due(struct burin_virtual_script *script, enum burin_virtual_call_id id)
{
    if (!script->n_left || (script->call != N_CALLS && script->call != id))
        return false;
    return --script->n_left == 0;
}

int burin_virtual_due(
        struct burin_virtual *machine, enum burin_virtual_call_id id, int needs)
{
    for (int i = 0; i < BURIN_VIRTUAL_SCRIPTS; i++)
        if (is_due(&machine->moves[i], id))
            move(machine, machine->moves[i].card, machine->moves[i].bytes);

    int error = 0;
    for (int i = 0; i < BURIN_VIRTUAL_SCRIPTS; i++) {
        struct burin_virtual_script *script = &machine->faults[i];
        if (!is_due(script, id))
            continue;
        if (script->fault == BURIN_FAULT_LATER) {
            machine->next_work_fails = script->error;
            continue;
        }
        error = script->error;
        if (script->fault == BURIN_FAULT_STICKY && (needs & NO_DRIVER))
            script->n_left = 1;
        else if (script->fault == BURIN_FAULT_STICKY)
            burin_virtual_self()->lost = error;
    }
    return error;
}

static struct burin_virtual_script *free_script(struct burin_virtual_script *scripts)
{
    int i = 0;
    while (i < BURIN_VIRTUAL_SCRIPTS && scripts[i].n_left)
        i++;
    assert(i < BURIN_VIRTUAL_SCRIPTS);
    return &scripts[i];
}

void burin_virtual_fail(
        struct burin_virtual *machine,
        const char *call,
        int nth,
        int error,
        enum burin_virtual_fault fault)
{
    const enum burin_virtual_call_id id = burin_virtual_call_id(call);
    assert(id != N_CALLS && nth > 0);
    *free_script(machine->faults) = (struct burin_virtual_script){
        .n_left = nth, .call = id, .error = error, .fault = fault
    };
}

void burin_virtual_neighbour(
        struct burin_virtual *machine, int card, const char *call, int nth, int64_t bytes)
{
    const enum burin_virtual_call_id id = call ? burin_virtual_call_id(call) : N_CALLS;
    assert(card < machine->options.n_cards && (!call || id != N_CALLS));
    if (nth == 0) {
        move(machine, card, bytes);
        return;
    }
    *free_script(machine->moves) = (struct burin_virtual_script){
        .n_left = nth, .call = id, .card = card, .bytes = bytes
    };
}

struct burin_virtual_call burin_virtual_call(const struct burin_virtual *machine, int i)
{
    struct burin_virtual_call call = { .name = burin_virtual_call_name(i) };
    if (call.name)
        call.n = machine->n_calls[i];
    return call;
}

int burin_virtual_n_calls(const struct burin_virtual *machine, const char *name)
{
    const enum burin_virtual_call_id id = burin_virtual_call_id(name);
    assert(id != N_CALLS);
    return machine->n_calls[id];
}
