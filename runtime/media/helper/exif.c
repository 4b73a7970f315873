#include "runtime/media/helper/helper.h"

#include <string.h>

enum { ORIENTATION = 0x0112, BYTE = 1, SHORT = 3, LONG = 4, ENTRY_BYTES = 12 };

struct tiff {
    const uint8_t *at;
    size_t length;
    bool big;
};

/* `n` bytes at `offset` as a number; the caller has checked that they are there. */
static uint32_t number(const struct tiff *tiff, size_t offset, int n)
{
    uint32_t value = 0;
    for (int i = 0; i < n; i++)
        value = value << 8 | tiff->at[offset + (size_t)(tiff->big ? i : n - 1 - i)];
    return value;
}

static int entry_value(const struct tiff *tiff, size_t entry)
{
    const uint32_t type = number(tiff, entry + 2, 2);
    const int n_bytes = type == SHORT ? 2 : type == LONG ? 4 : type == BYTE ? 1 : 0;
    if (!n_bytes || number(tiff, entry + 4, 4) != 1)
        return 1;
    const uint32_t value = number(tiff, entry + 8, n_bytes);
    return value >= 1 && value <= 8 ? (int)value : 1;
}

int burin_exif_orientation(const uint8_t *bytes, size_t length)
{
    if (length >= 6 && memcmp(bytes, "Exif\0\0", 6) == 0) {
        bytes += 6;
        length -= 6;
    }
    if (length < 10 || (memcmp(bytes, "II*\0", 4) != 0 && memcmp(bytes, "MM\0*", 4) != 0))
        return 1;
    const struct tiff tiff = { bytes, length, bytes[0] == 'M' };
    const size_t directory = number(&tiff, 4, 4);
    if (directory > length - 2)
        return 1;
    const size_t n_entries = number(&tiff, directory, 2);
    for (size_t i = 0; i < n_entries; i++) {
        const size_t entry = directory + 2 + i * ENTRY_BYTES;
        if (entry + ENTRY_BYTES > length)
            return 1;
        if (number(&tiff, entry, 2) == ORIENTATION)
            return entry_value(&tiff, entry);
    }
    return 1;
}
