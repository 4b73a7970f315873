#include "runtime/media/fit.h"

#include <math.h>

static int root(int64_t square)
{
    int side = 1;
    while ((int64_t)side * side < square)
        side++;
    return side;
}

struct burin_vision burin_vision_of(const struct burin_input *pixels, int max_soft)
{
    return (struct burin_vision){
        .patch = root(pixels->dims[1].fixed.terms[0].factor / 3),
        .pool = root(pixels->dims[0].slope.terms[0].factor),
        .max_soft = max_soft,
    };
}

/* min(floor(long / short), max_soft) */
static int along(int64_t longer, int64_t shorter, int max_soft)
{
    const int64_t n = longer / shorter;
    return n < max_soft ? (int)n : max_soft;
}

enum burin_status burin_fit(
        const struct burin_vision *vision,
        int64_t width,
        int64_t height,
        struct burin_grid *grid,
        struct burin_error *err)
{
    if (width < 1 || height < 1)
        return burin_fail(
                err, BURIN_ELIMIT, "a picture of %lld x %lld pixels has nothing to see",
                (long long)width, (long long)height);

    /* As the reference computes it, in doubles and in this order: a side that is a multiple
     * but for rounding must fall to the same one. */
    const double side = burin_vision_side(vision);
    const double most = (double)vision->max_soft * side * side;
    const double factor = sqrt(most / ((double)height * (double)width));
    int rows = (int)floor(factor * (double)height / side);
    int columns = (int)floor(factor * (double)width / side);

    if (!rows && columns) {
        rows = 1;
        columns = along(width, height, vision->max_soft);
    } else if (!columns && rows) {
        columns = 1;
        rows = along(height, width, vision->max_soft);
    }
    if (rows < 1 || columns < 1 || (int64_t)rows * columns > vision->max_soft)
        return burin_fail(
                err, BURIN_ELIMIT,
                "%lld x %lld pixels would be %d x %d soft tokens, at most %d are possible",
                (long long)width, (long long)height, columns, rows, vision->max_soft);
    *grid = (struct burin_grid){ .rows = rows, .columns = columns };
    return BURIN_OK;
}
