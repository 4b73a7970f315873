#include "runtime/engine/calls.h"

#include "runtime/plan/runs.h"
#include "runtime/plan/size.h"

#include <string.h>

static uint8_t *pointer(uint64_t address)
{
    return (uint8_t *)(uintptr_t)address;
}

void burin_largest_extents(
        const struct burin_plan *plan, int program, int n[BURIN_N_EXTENTS])
{
    const struct burin_program *of = &plan->family->programs[program];
    if (!burin_is_encoder(of)) {
        memcpy(n, plan->n, sizeof plan->n);
        return;
    }
    memset(n, 0, sizeof plan->n);
    n[BURIN_SOFT] = plan->programs[program].n_eager;
    const struct burin_ladder *graphs = &plan->programs[program].graphs;
    if (graphs->n && graphs->sizes[graphs->n - 1] > n[BURIN_SOFT])
        n[BURIN_SOFT] = graphs->sizes[graphs->n - 1];
}

enum burin_status burin_program_call_open(
        struct burin_program_call *of,
        const struct burin_plan *plan,
        int program,
        const struct burin_memory *memory,
        struct burin_error *err)
{
    int n[BURIN_N_EXTENTS];
    burin_largest_extents(plan, program, n);
    *of = (struct burin_program_call){ .program = &plan->family->programs[program] };
    if (of->program->n_inputs > BURIN_MAX_INPUTS)
        return burin_fail(
                err, BURIN_ELIMIT, "program %s has %d inputs, the engine has room for %d",
                of->program->name, of->program->n_inputs, BURIN_MAX_INPUTS);
    for (int i = 0; i < of->program->n_inputs; i++) {
        const bool cache = burin_input_is_cache(&of->program->inputs[i]);
        const size_t offset = burin_input_offset(of->program, i, &plan->params, n);
        if (!cache)
            of->inputs[i] = pointer(memory->inputs.address + offset);
        else if (memory->cache.bytes) /* else nobody encodes, and no row is read */
            of->inputs[i] = pointer(memory->cache.address);
    }
    of->states[0] = pointer(memory->kv.address);
    of->states[1] = memory->slots.bytes ? pointer(memory->slots.address) : NULL;
    of->call = (struct burin_call){
        .weights = pointer(memory->weights.address),
        .arena = pointer(memory->arena.address),
        .inputs = of->inputs,
        .states = of->states,
        .params = plan->params,
    };
    return BURIN_OK;
}
