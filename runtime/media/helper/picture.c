#include "runtime/media/helper/helper.h"

enum burin_status burin_picture_check(
        const struct burin_helper *helper,
        int64_t width,
        int64_t height,
        struct burin_error *err)
{
    if (width < 1 || height < 1)
        return burin_fail(
                err, BURIN_EFORMAT, "a picture of %lld x %lld pixels", (long long)width,
                (long long)height);
    if (width <= helper->max_side && height <= helper->max_side &&
        width <= helper->max_pixels / height)
        return BURIN_OK;
    return burin_fail(
            err, BURIN_ELIMIT,
            "%lld x %lld pixels; at most %lld a side and %lld in all are decoded: make it "
            "smaller",
            (long long)width, (long long)height, (long long)helper->max_side,
            (long long)helper->max_pixels);
}

enum burin_status burin_picture_take(
        struct burin_helper *helper,
        struct burin_picture *picture,
        int64_t width,
        int64_t height,
        int channels,
        struct burin_error *err)
{
    const enum burin_status status = burin_picture_check(helper, width, height, err);
    if (status)
        return status;
    picture->width = (int)width;
    picture->height = (int)height;
    picture->orientation = 1;
    picture->stride = (size_t)width * (size_t)channels;
    picture->pixels = burin_arena_take(&helper->arena, (size_t)height, picture->stride, 64);
    if (!picture->pixels)
        return burin_fail(
                err, BURIN_ENOMEM, "no memory for %lld x %lld pixels", (long long)width,
                (long long)height);
    return BURIN_OK;
}

/* `level` of so much alpha over white, as Pillow rounds it (AlphaComposite.c). */
static uint8_t over_white(uint32_t level, uint32_t alpha)
{
    enum { BITS = 7 };
    if (!alpha)
        return 255;
    const uint32_t share = alpha << BITS;
    const uint32_t sum = level * share + 255 * ((255u << BITS) - share) + (0x80u << BITS);
    return (uint8_t)(((sum >> 8) + sum) >> 8 >> BITS);
}

void burin_picture_flatten(struct burin_picture *picture)
{
    const size_t n_pixels = (size_t)picture->width * (size_t)picture->height;
    const uint8_t *from = picture->pixels;
    uint8_t *to = picture->pixels; /* never ahead of `from` */
    for (size_t i = 0; i < n_pixels; i++, from += 4, to += 3) {
        const uint8_t alpha = from[3];
        for (int c = 0; c < 3; c++)
            to[c] = alpha == 255 ? from[c] : over_white(from[c], alpha);
    }
    picture->stride = (size_t)picture->width * 3;
}
