#include "runtime/plan/encoder.h"

#include "runtime/plan/size.h"

#include <limits.h>

struct burin_run_limits burin_run_limits(int n_soft, int smallest, int rows_each)
{
    const int64_t rows = burin_multiply(n_soft, rows_each);
    return (struct burin_run_limits){
        .n_soft = n_soft,
        .n_items = n_soft / smallest,
        .n_rows = rows > INT_MAX ? INT_MAX : (int)rows,
    };
}

enum burin_status burin_run_take(
        const struct burin_run_limits *limits,
        const struct burin_item *items,
        int n_items,
        int *n_taken,
        struct burin_error *err)
{
    int64_t soft = 0;
    int64_t rows = 0;
    int n = 0;
    while (n < n_items && n < limits->n_items && soft + items[n].n_soft <= limits->n_soft &&
           rows + items[n].n_rows <= limits->n_rows) {
        soft += items[n].n_soft;
        rows += items[n].n_rows;
        n++;
    }
    *n_taken = n;
    if (n || !n_items)
        return BURIN_OK;
    if (items->n_soft > limits->n_soft)
        return burin_fail(
                err, BURIN_ELIMIT, "an item of %d soft tokens is above the %d of a run",
                items->n_soft, limits->n_soft);
    return burin_fail(
            err, BURIN_ELIMIT, "an item of %d rows is above the %d of a run", items->n_rows,
            limits->n_rows);
}

enum burin_status burin_run_items(
        int smallest_item,
        int smallest_graph,
        int largest_graph,
        int asked,
        int *n_items,
        struct burin_error *err)
{
    const int most = largest_graph / smallest_item;
    *n_items = asked ? asked : most < smallest_graph ? most : smallest_graph;
    if (*n_items <= smallest_graph)
        return BURIN_OK;
    return burin_fail(
            err, BURIN_EUSAGE,
            "%d items in a run of %d soft tokens: each item has one at least", *n_items,
            smallest_graph);
}

int burin_run_largest(
        const struct burin_program *program,
        const struct burin_params *params,
        int64_t bytes,
        int step,
        int most)
{
    int fits = 0;
    int above = most / step + 1;
    while (above - fits > 1) {
        const int middle = fits + (above - fits) / 2;
        const int n[BURIN_N_EXTENTS] = { [BURIN_SOFT] = middle * step };
        if ((int64_t)burin_arena_bytes(program, params, n) <= bytes)
            fits = middle;
        else
            above = middle;
    }
    return fits * step;
}
