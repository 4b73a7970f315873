/* runtime/plan/size.h -- The sizes that the emitted tables state, as numbers.
 *
 * Units    Bytes where the function's name says so.
 * Overflow What does not fit an int64_t becomes INT64_MAX, all through: such a size fits no
 *          machine, so the plan refuses it by the same comparison as any other.
 * Threads  Pure functions; nothing is allocated. */
#ifndef BURIN_PLAN_SIZE_H
#define BURIN_PLAN_SIZE_H

#include "runtime/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Inputs lie one behind another, each at a multiple of this. */
enum { BURIN_INPUT_ALIGN = 64 };

/* a + b and a * b for a, b >= 0, INT64_MAX where they don't fit. */
int64_t burin_add(int64_t a, int64_t b);
int64_t burin_multiply(int64_t a, int64_t b);

int64_t burin_size_at(const struct burin_size *size, const struct burin_params *params);

/* fixed + slope * n */
size_t burin_linear_at(
        const struct burin_linear *linear, const struct burin_params *params, int n);

/* What a program's arena holds at these extents: all that is carried, and the largest phase. */
size_t burin_arena_bytes(
        const struct burin_program *program,
        const struct burin_params *params,
        const int n[BURIN_N_EXTENTS]);

/* Where in the arena the region of row `row` of the costs begins. */
size_t burin_region_offset(
        const struct burin_program *program,
        int row,
        const struct burin_params *params,
        const int n[BURIN_N_EXTENTS]);

/* Where in the arena output number `output` begins. */
size_t burin_output_offset(
        const struct burin_program *program,
        int output,
        const struct burin_params *params,
        const int n[BURIN_N_EXTENTS]);

/* Bytes of an element; 0 where a row's elements have no size of their own (BURIN_Q8). */
size_t burin_dtype_bytes(enum burin_dtype dtype);

/* The encoder cache is an input that several runs share and that stays from one to the next:
 * its rows are max_soft. It does not lie among a program's other inputs. */
bool burin_input_is_cache(const struct burin_input *input);

/* One input's own bytes; where it begins among a program's inputs; what they take together,
 * without the encoder cache. */
size_t burin_input_bytes(
        const struct burin_input *input,
        const struct burin_params *params,
        const int n[BURIN_N_EXTENTS]);
size_t burin_input_offset(
        const struct burin_program *program,
        int input,
        const struct burin_params *params,
        const int n[BURIN_N_EXTENTS]);
size_t burin_inputs_bytes(
        const struct burin_program *program,
        const struct burin_params *params,
        const int n[BURIN_N_EXTENTS]);

#endif
