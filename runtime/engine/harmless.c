#include "runtime/engine/harmless.h"

#include "runtime/plan/runs.h"
#include "runtime/plan/size.h"

#include <string.h>

/* "sequence_begin", "output_begin", "item_begin": 0, and behind the first all that there are. */
static void begin_once(int32_t *begin, size_t n, int all)
{
    for (size_t i = 0; i < n; i++)
        begin[i] = i ? all : 0;
}

static void count_up(int32_t *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        at[i] = (int32_t)i;
}

static int rows_of_items(const struct burin_program_call *of)
{
    for (int i = 0; i < of->program->n_inputs; i++) {
        const struct burin_input *input = &of->program->inputs[i];
        if (strcmp(input->name, "item_begin") != 0 && input->n_dims > 0 &&
            input->dims[0].extent == BURIN_SOFT)
            return (int)burin_linear_at(
                    &input->dims[0], &of->call.params, of->call.n[BURIN_SOFT]);
    }
    return of->call.n[BURIN_SOFT];
}

static void fill(
        void *at,
        size_t bytes,
        const struct burin_input *input,
        const struct burin_program_call *of)
{
    static const char *const without[] = { "positions", "output_positions", "state_of",
                                           "soft_index" };
    const size_t n = bytes / sizeof(int32_t);
    memset(at, 0, bytes);
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (strcmp(input->name, without[i]) == 0)
            memset(at, 0xff, bytes); /* -1 */
    if (strcmp(input->name, "sequence_begin") == 0)
        begin_once(at, n, of->call.n[BURIN_TOKENS]);
    if (strcmp(input->name, "output_begin") == 0)
        begin_once(at, n, of->call.n[BURIN_OUTPUTS]);
    if (strcmp(input->name, "item_begin") == 0)
        begin_once(at, n, rows_of_items(of));
    if (strcmp(input->name, "output_rows") == 0)
        count_up(at, n);
}

void burin_harmless_inputs(
        const struct burin_staging *staging, const struct burin_program_call *of)
{
    for (int i = 0; i < of->program->n_inputs; i++) {
        const struct burin_input *input = &of->program->inputs[i];
        void *at = burin_staging_input(staging, of, i);
        if (at)
            fill(at, burin_input_bytes(input, &of->call.params, of->call.n), input, of);
    }
}
