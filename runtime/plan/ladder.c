#include "runtime/plan/ladder.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>

static enum burin_status too_many(const char *what, struct burin_error *err)
{
    return burin_fail(err, BURIN_EUSAGE, "%s: more than %d graphs", what, BURIN_MAX_LADDER);
}

enum burin_status burin_ladder_double(
        struct burin_ladder *ladder, int smallest, int largest, struct burin_error *err)
{
    ladder->n = 0;
    if (smallest < 1 || largest < smallest)
        return burin_fail(
                err, BURIN_EUSAGE,
                "graphs from %d to %d: the smallest is at least 1, the largest not below "
                "it",
                smallest, largest);
    for (int64_t size = smallest; size < largest; size *= 2)
        ladder->sizes[ladder->n++] = (int)size; /* 31 doublings at most */
    ladder->sizes[ladder->n++] = largest;
    return BURIN_OK;
}

/* From the largest down: below a size s that serves n >= s * (100 - percent) / 100 the next
 * must stand, and no lower one serves. No other choice has fewer. */
enum burin_status burin_ladder_padded(
        struct burin_ladder *ladder, int most, int percent, struct burin_error *err)
{
    ladder->n = 0;
    if (most < 1)
        return burin_fail(err, BURIN_EUSAGE, "graphs from 1 to %d: there are none", most);
    if (percent < 0 || percent > 99)
        return burin_fail(
                err, BURIN_EUSAGE, "--graph-padding %d is outside 0 ... 99", percent);

    int downwards[BURIN_MAX_LADDER];
    int n = 0;
    for (int64_t size = most; size >= 1; n++) {
        if (n == BURIN_MAX_LADDER)
            return too_many("--graph-padding", err);
        downwards[n] = (int)size;
        const int64_t served = (size * (100 - percent) + 99) / 100;
        size = size > 1 && served <= 1 ? 1 : served - 1; /* the first is always 1 */
    }
    for (int i = 0; i < n; i++)
        ladder->sizes[i] = downwards[n - 1 - i];
    ladder->n = n;
    return BURIN_OK;
}

enum burin_status burin_ladder_parse(
        struct burin_ladder *ladder,
        const char *text,
        size_t length,
        struct burin_error *err)
{
    const char *end = text + length;
    int last = 0;
    ladder->n = 0;
    for (const char *at = text; at <= end; at++) {
        long size = 0;
        const char *begin = at;
        while (at < end && *at >= '0' && *at <= '9' && size <= INT_MAX)
            size = size * 10 + (*at++ - '0');
        if (at == begin || (at < end && *at != ',') || size > INT_MAX || size <= last)
            return burin_fail(
                    err, BURIN_EUSAGE,
                    "'%.*s' is no list of graphs; rising numbers like 1,2,4 are",
                    length > 60 ? 60 : (int)length, text);
        if (ladder->n == BURIN_MAX_LADDER)
            return too_many("--graphs", err);
        last = (int)size;
        ladder->sizes[ladder->n++] = last;
    }
    return BURIN_OK;
}

struct burin_ladder_end burin_ladder_end(const struct burin_ladder *ladder)
{
    struct burin_ladder_end end;
    snprintf(
            end.text, sizeof end.text, "%s%d", ladder->n > 1 ? "...," : "",
            ladder->sizes[ladder->n - 1]);
    return end;
}

int burin_ladder_size(const struct burin_ladder *ladder, int n)
{
    for (int i = 0; i < ladder->n; i++)
        if (ladder->sizes[i] >= n)
            return ladder->sizes[i];
    return 0;
}

int burin_ladder_without(const struct burin_ladder *ladder, int i)
{
    return i + 1 < ladder->n ? ladder->sizes[i + 1] : 0;
}
