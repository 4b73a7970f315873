/* A limit is an option, too: the reserve, the cap or the share of the card that would do. */
#include "runtime/plan/sketch.h"

#include "runtime/base/units.h"

#include <stdio.h>

static const int64_t MIB = 1 << 20;

/* The least of the card that will do, all of it where `all` says so; -1 where that does not. */
static int64_t least_limit(
        const struct burin_plan *plan, const struct burin_plan_request *request, bool all)
{
    struct burin_plan_request other = *request;
    int64_t short_of = plan->limit_bytes;
    int64_t enough = request->card.available_bytes;
    other.limit = BURIN_LIMIT_BYTES;
    other.limit_bytes = enough;
    if (short_of >= enough || !burin_plan_sketch_fits(&other))
        return -1;
    while (!all && enough - short_of > 1) {
        other.limit_bytes = short_of + (enough - short_of) / 2;
        if (burin_plan_sketch_fits(&other))
            enough = other.limit_bytes;
        else
            short_of = other.limit_bytes;
    }
    return enough;
}

/* The reserve that leaves as much: in units of which that many make a round number. */
static void leave(struct burin_plan_request *request, int64_t limit)
{
    const int64_t reserve = request->card.available_bytes - limit;
    const int64_t unit = reserve < 64 * MIB ? MIB : 64 * MIB;
    request->limit = BURIN_LIMIT_RESERVE;
    request->limit_bytes = reserve / unit * unit;
}

/* The roundest from `limit` on that the card has. */
static void cap(struct burin_plan_request *request, int64_t limit)
{
    for (int64_t unit = 64 * MIB; unit; unit = unit == 64 * MIB ? MIB : unit == MIB) {
        request->limit_bytes = (limit + unit - 1) / unit * unit;
        if (unit == 1 || request->limit_bytes <= request->card.available_bytes)
            return;
    }
}

static void share(struct burin_plan_request *request, int64_t limit)
{
    const double total = (double)request->card.total_bytes;
    for (int parts = 100; parts <= 10000; parts *= 10) {
        int n = (int)((double)limit / total * parts);
        n += n / (double)parts * total < (double)limit;
        request->limit_fraction = (double)n / parts;
        if (request->limit_fraction * total <= (double)request->card.available_bytes)
            return;
        request->limit_fraction = (double)(n - 1) / parts; /* all but a little */
    }
}

bool burin_plan_loosen(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        bool all,
        struct burin_plan_request *loose,
        char *option,
        size_t capacity)
{
    const int64_t limit = least_limit(plan, request, all);
    *loose = *request;
    if (limit < 0)
        return false;
    switch (request->limit) {
    case BURIN_LIMIT_RESERVE_DEFAULT:
    case BURIN_LIMIT_RESERVE:
        leave(loose, limit);
        snprintf(
                option, capacity, "--vram-reserve %s",
                burin_exact_bytes(loose->limit_bytes).text);
        break;
    case BURIN_LIMIT_BYTES:
        cap(loose, limit);
        snprintf(
                option, capacity, "--vram-limit %s",
                burin_exact_bytes(loose->limit_bytes).text);
        break;
    case BURIN_LIMIT_FRACTION:
        share(loose, limit);
        snprintf(option, capacity, "--vram-fraction %g", loose->limit_fraction);
        break;
    case BURIN_LIMIT_NONE:
        return false;
    }
    return burin_plan_sketch_fits(loose);
}
