/* tests/fuzz/fuzz_picture.c -- A picture of any bytes is decoded or refused. */
#include "runtime/media/helper/helper.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static uint64_t sum; /* so that what is decoded is used */

static enum burin_status decode(
        struct burin_helper *helper,
        struct burin_bytes file,
        struct burin_picture *picture,
        struct burin_error *err)
{
    switch (burin_detect(file)) {
    case BURIN_FILE_JPEG:
        return burin_decode_jpeg(helper, file, picture, err);
    case BURIN_FILE_PNG:
        return burin_decode_png(helper, file, picture, err);
    case BURIN_FILE_WEBP:
        return burin_decode_webp(helper, file, picture, err);
    default:
        return burin_refuse_file(file, "picture", err);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct burin_helper helper = { .max_side = 2048, .max_pixels = 1 << 18 };
    struct burin_picture picture = { 0 };
    struct burin_error err = { 0 };
    const struct burin_bytes file = { bytes, n };
    const enum burin_status status = decode(&helper, file, &picture, &err);
    PROMISE(status == err.status);
    PROMISE(status == BURIN_OK || status == BURIN_EFORMAT || status == BURIN_ELIMIT);
    if (!status) {
        PROMISE(picture.orientation >= 1 && picture.orientation <= 8);
        for (int y = 0; y < picture.height; y++)
            for (size_t i = 0; i < (size_t)picture.width * 3; i++)
                sum += picture.pixels[(size_t)y * picture.stride + i];
    }
    burin_arena_close(&helper.arena);

    const int orientation = burin_exif_orientation(bytes, n);
    PROMISE(orientation >= 1 && orientation <= 8);
    return 0;
}
