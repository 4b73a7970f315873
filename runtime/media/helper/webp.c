#include "runtime/media/helper/helper.h"

#include <string.h>

#include <webp/decode.h>

static size_t little_endian(const uint8_t *at)
{
    return (size_t)at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
}

/* What the chunk "EXIF" says, of the RIFF file that libwebp has accepted. */
static int read_orientation(struct burin_bytes file)
{
    size_t at = 12;
    while (at < file.length && file.length - at >= 8) {
        const size_t n = little_endian(file.at + at + 4);
        const size_t left = file.length - at - 8;
        if (n > left)
            break;
        if (memcmp(file.at + at, "EXIF", 4) == 0)
            return burin_exif_orientation(file.at + at + 8, n);
        at += 8 + n + n % 2;
    }
    return 1;
}

enum burin_status burin_decode_webp(
        struct burin_helper *helper,
        struct burin_bytes file,
        struct burin_picture *picture,
        struct burin_error *err)
{
    WebPBitstreamFeatures found;
    if (WebPGetFeatures(file.at, file.length, &found) != VP8_STATUS_OK)
        return burin_fail(err, BURIN_EFORMAT, "a damaged WebP picture");
    if (found.has_animation)
        return burin_fail(
                err, BURIN_EFORMAT,
                "an animated WebP; only still ones are read: make it a video or a picture");
    const int channels = found.has_alpha ? 4 : 3;
    const enum burin_status status =
            burin_picture_take(helper, picture, found.width, found.height, channels, err);
    if (status)
        return status;

    const size_t size = picture->stride * (size_t)picture->height;
    const int stride = (int)picture->stride;
    const uint8_t *decoded =
            found.has_alpha ? WebPDecodeRGBAInto(
                                      file.at, file.length, picture->pixels, size, stride)
                            : WebPDecodeRGBInto(
                                      file.at, file.length, picture->pixels, size, stride);
    if (!decoded)
        return burin_fail(err, BURIN_EFORMAT, "a damaged or truncated WebP picture");
    if (found.has_alpha)
        burin_picture_flatten(picture);
    picture->orientation = read_orientation(file);
    return BURIN_OK;
}
