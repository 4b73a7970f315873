/* tests/runtime/media/helper.h -- burin-media as it was built, and what golden data needs. */
#ifndef BURIN_TEST_HELPER_H
#define BURIN_TEST_HELPER_H

#include "runtime/media/media.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

/* The helper in $BURIN_BIN or build/bin; where it wasn't built the test is skipped. */
static const struct burin_media *the_helper(void)
{
    static struct burin_media media;
    static char path[512];
    const char *folder = getenv("BURIN_BIN");
    snprintf(path, sizeof path, "%s/burin-media", folder ? folder : "build/bin");
    SKIP_UNLESS(burin_media_at(&media, path, NULL) == BURIN_OK);
    return &media;
}

/* zlib's CRC-32, begun with 0. */
static inline uint32_t crc_of(uint32_t crc, const uint8_t *bytes, size_t length)
{
    crc = ~crc;
    for (size_t i = 0; i < length; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

/* Two digits of hexadecimal. */
static inline int byte_of(const char *text)
{
    const char digits[3] = { text[0], text[1], 0 };
    return (int)strtol(digits, NULL, 16);
}

#endif
