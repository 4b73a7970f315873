#include "runtime/engine/staging.h"

#include "runtime/plan/size.h"

void *burin_staging_input(
        const struct burin_staging *staging, const struct burin_program_call *of, int i)
{
    if (!of->inputs[i] || burin_input_is_cache(&of->program->inputs[i]))
        return NULL;
    return staging->inputs + ((uintptr_t)of->inputs[i] - staging->inputs_address);
}

enum burin_status burin_staging_send(
        const struct burin_staging *staging,
        const struct burin_program_call *of,
        struct burin_error *err)
{
    enum burin_status status = BURIN_OK;
    if (!staging->copies)
        return BURIN_OK;
    for (int i = 0; i < of->program->n_inputs && !status; i++) {
        const void *from = burin_staging_input(staging, of, i);
        const size_t bytes =
                burin_input_bytes(&of->program->inputs[i], &of->call.params, of->call.n);
        if (from && bytes)
            status = burin_queue_copy_in(
                    staging->queue, (uintptr_t)of->inputs[i], from, bytes, err);
    }
    return status;
}

enum burin_status burin_staging_fetch(
        const struct burin_staging *staging,
        size_t place,
        const void *from,
        size_t bytes,
        const void **at,
        struct burin_error *err)
{
    *at = staging->copies ? staging->results + place : from;
    if (!staging->copies)
        return BURIN_OK;
    if (place > staging->results_bytes || bytes > staging->results_bytes - place)
        return burin_fail(
                err, BURIN_ELIMIT, "a run leaves %zu bytes, there is room for %zu",
                place + bytes, staging->results_bytes);
    return burin_queue_copy_out(
            staging->queue, staging->results + place, (uintptr_t)from, bytes, err);
}
