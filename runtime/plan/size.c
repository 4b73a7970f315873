#include "runtime/plan/size.h"

int64_t burin_add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

int64_t burin_multiply(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

int64_t burin_size_at(const struct burin_size *size, const struct burin_params *params)
{
    int64_t sum = 0;
    for (int i = 0; i < BURIN_MAX_TERMS && size->terms[i].factor; i++) {
        int64_t term = size->terms[i].factor;
        for (int p = 0; p < BURIN_N_PARAMS; p++)
            for (int k = 0; k < size->terms[i].power[p]; k++)
                term = burin_multiply(term, params->value[p]);
        sum = burin_add(sum, term);
    }
    return sum;
}

size_t burin_linear_at(
        const struct burin_linear *linear, const struct burin_params *params, int n)
{
    const int64_t fixed = burin_size_at(&linear->fixed, params);
    const int64_t slope = burin_size_at(&linear->slope, params);
    return (size_t)burin_add(fixed, burin_multiply(slope, n));
}

static size_t add(size_t a, size_t b)
{
    return (size_t)burin_add((int64_t)a, (int64_t)b);
}

static size_t at(
        const struct burin_linear *linear,
        const struct burin_params *params,
        const int n[BURIN_N_EXTENTS])
{
    return burin_linear_at(linear, params, n[linear->extent]);
}

size_t burin_region_offset(
        const struct burin_program *program,
        int row,
        const struct burin_params *params,
        const int n[BURIN_N_EXTENTS])
{
    size_t begin = 0;
    for (int i = 0; i < row && i < program->n_carried; i++)
        begin = add(begin, at(&program->costs[i].bytes, params, n));
    return begin;
}

size_t burin_arena_bytes(
        const struct burin_program *program,
        const struct burin_params *params,
        const int n[BURIN_N_EXTENTS])
{
    size_t largest = 0;
    for (int i = program->n_carried; i < program->n_costs; i++) {
        const size_t phase = at(&program->costs[i].bytes, params, n);
        if (phase > largest)
            largest = phase;
    }
    return add(burin_region_offset(program, program->n_costs, params, n), largest);
}

size_t burin_output_offset(
        const struct burin_program *program,
        int output,
        const struct burin_params *params,
        const int n[BURIN_N_EXTENTS])
{
    const struct burin_output *row = &program->outputs[output];
    return add(
            burin_region_offset(program, row->phase, params, n),
            at(&row->offset, params, n));
}

size_t burin_dtype_bytes(enum burin_dtype dtype)
{
    switch (dtype) {
    case BURIN_F32:
    case BURIN_I32:
        return 4;
    case BURIN_F16:
    case BURIN_BF16:
        return 2;
    case BURIN_U8:
        return 1;
    case BURIN_Q8:
    case BURIN_FP8:
    case BURIN_NVFP4:
    case BURIN_N_DTYPES:
        break;
    }
    return 0;
}

size_t burin_input_bytes(
        const struct burin_input *input,
        const struct burin_params *params,
        const int n[BURIN_N_EXTENTS])
{
    int64_t bytes = (int64_t)burin_dtype_bytes(input->dtype);
    for (int i = 0; i < input->n_dims; i++)
        bytes = burin_multiply(bytes, (int64_t)at(&input->dims[i], params, n));
    return (size_t)bytes;
}

bool burin_input_is_cache(const struct burin_input *input)
{
    for (int i = 0; i < input->n_dims; i++)
        for (int term = 0; term < BURIN_MAX_TERMS; term++)
            if (input->dims[i].fixed.terms[term].factor &&
                input->dims[i].fixed.terms[term].power[BURIN_MAX_SOFT])
                return true;
    return false;
}

size_t burin_input_offset(
        const struct burin_program *program,
        int input,
        const struct burin_params *params,
        const int n[BURIN_N_EXTENTS])
{
    size_t offset = 0;
    for (int i = 0; i < input; i++) {
        if (burin_input_is_cache(&program->inputs[i]))
            continue;
        offset = add(offset, burin_input_bytes(&program->inputs[i], params, n));
        offset = add(offset, BURIN_INPUT_ALIGN - 1) / BURIN_INPUT_ALIGN * BURIN_INPUT_ALIGN;
    }
    return offset;
}

size_t burin_inputs_bytes(
        const struct burin_program *program,
        const struct burin_params *params,
        const int n[BURIN_N_EXTENTS])
{
    return burin_input_offset(program, program->n_inputs, params, n);
}
