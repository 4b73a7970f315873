/* runtime/base/units.h -- Sizes as people write and read them.
 *
 * Read     "512MiB", "1.5 GiB", "2G", "4096": K, M, G, T with or without "iB" or "B" are
 *          powers of 1024, as memory is counted; no unit is bytes.
 * Write    "16.9 GiB", "640 KiB", "12 B": three digits, the unit that keeps them short;
 *          "64MiB", "1234567": exactly, as an option takes it.
 * Threads  Pure functions. */
#ifndef BURIN_BASE_UNITS_H
#define BURIN_BASE_UNITS_H

#include "runtime/base/status.h"

#include <stdint.h>

/* `length` bytes of text. BURIN_EUSAGE says what is wrong; *bytes is untouched then. */
enum burin_status burin_parse_bytes(
        const char *text, size_t length, int64_t *bytes, struct burin_error *err);

struct burin_text24 {
    char text[24];
};
struct burin_text24 burin_human_bytes(int64_t bytes);
struct burin_text24 burin_exact_bytes(int64_t bytes);

/* 590291 as "590,291". */
struct burin_text24 burin_grouped(int64_t n);

#endif
