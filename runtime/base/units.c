#include "runtime/base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
enum { N_UNITS = sizeof units / sizeof *units };

/* The bytes that a unit stands for: powers of 1024 of GiB and G, of 1000 of GB. 0: it is none. */
static double unit_bytes(const char *unit)
{
    if (!*unit)
        return 1;
    for (int i = 0; i < N_UNITS; i++) {
        const char decimal[] = { units[i][0], 'B', '\0' };
        const char letter[] = { units[i][0], '\0' };
        if (strcasecmp(unit, units[i]) == 0 || strcasecmp(unit, letter) == 0)
            return ldexp(1, 10 * i);
        if (i && strcasecmp(unit, decimal) == 0)
            return pow(1000, i);
    }
    return 0;
}

enum burin_status burin_parse_bytes(
        const char *text, size_t length, int64_t *bytes, struct burin_error *err)
{
    char copy[40];
    const int shown = length < 200 ? (int)length : 200;
    if (length == 0 || length >= sizeof copy)
        return burin_fail(
                err, BURIN_EUSAGE, "'%.*s' is not a size like 512MiB or 1.5GiB", shown,
                text);
    memcpy(copy, text, length);
    copy[length] = '\0';

    char *end = copy;
    const size_t digits = strspn(copy, "0123456789.");
    const double number = digits ? strtod(copy, &end) : 0.0;
    if (end != copy + digits || digits == 0)
        return burin_fail(
                err, BURIN_EUSAGE, "'%.*s' is not a size like 512MiB or 1.5GiB", shown,
                text);
    while (*end == ' ')
        end++;
    const double unit = unit_bytes(end);
    if (unit < 1)
        return burin_fail(
                err, BURIN_EUSAGE,
                "'%s' in '%.*s' is not a unit of size; KiB, MiB and GiB are", end, shown,
                text);
    const double value = number * unit;
    if (value >= 0x1p63)
        return burin_fail(
                err, BURIN_EUSAGE, "%.*s is beyond what can be counted", shown, text);
    *bytes = (int64_t)value;
    return BURIN_OK;
}

struct burin_text24 burin_human_bytes(int64_t bytes)
{
    struct burin_text24 out;
    double value = (double)bytes;
    int unit = 0;
    while (fabs(value) >= 1023.5 && unit < N_UNITS - 1) {
        value /= 1024;
        unit++;
    }
    const double size = fabs(value);
    const int decimals = unit == 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
    snprintf(out.text, sizeof out.text, "%.*f %s", decimals, value, units[unit]);
    return out;
}

struct burin_text24 burin_exact_bytes(int64_t bytes)
{
    const int64_t mib = 1 << 20;
    struct burin_text24 out;
    int unit = bytes && bytes % mib == 0 ? 2 : 0;
    if (unit && bytes / mib % 1024 == 0)
        unit = 3;
    snprintf(
            out.text, sizeof out.text, "%lld%s", (long long)bytes >> 10 * unit,
            unit ? units[unit] : "");
    return out;
}

struct burin_text24 burin_grouped(int64_t n)
{
    char digits[24];
    const int length = snprintf(
            digits, sizeof digits, "%llu",
            n < 0 ? -(unsigned long long)n : (unsigned long long)n);
    struct burin_text24 out = { "" };
    int at = 0;
    if (n < 0)
        out.text[at++] = '-';
    for (int i = 0; i < length && at < (int)sizeof out.text - 1; i++) {
        if (i && (length - i) % 3 == 0 && at < (int)sizeof out.text - 2)
            out.text[at++] = ',';
        out.text[at++] = digits[i];
    }
    return out;
}
