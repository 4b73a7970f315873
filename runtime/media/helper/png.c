#include "runtime/media/helper/helper.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <png.h>

enum { MOST_CHUNK_BYTES = 8 << 20, MOST_CHUNKS = 1000 };

struct reader {
    struct burin_bytes left;
    char said[128];
};

static void leave(png_structp png, png_const_charp text)
{
    struct reader *reader = png_get_error_ptr(png);
    snprintf(reader->said, sizeof reader->said, "%s", text);
    longjmp(png_jmpbuf(png), 1);
}

static void ignore(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static void read_bytes(png_structp png, png_bytep to, size_t n)
{
    struct reader *reader = png_get_io_ptr(png);
    if (n > reader->left.length)
        png_error(png, "it ends too early");
    memcpy(to, reader->left.at, n);
    reader->left.at += n;
    reader->left.length -= n;
}

/* Whatever the file holds comes out as bytes of red, green, blue and, where there is any
 * transparency, alpha. Of 16 bits the upper 8 are kept, as Pillow does. */
static bool set_transforms(png_structp png, png_infop info)
{
    const int color = png_get_color_type(png, info);
    const bool has_alpha = (color & PNG_COLOR_MASK_ALPHA) != 0 ||
                           png_get_valid(png, info, PNG_INFO_tRNS) != 0;
    png_set_expand(png); /* palettes, 1, 2 and 4 bits, transparent colors */
    png_set_strip_16(png);
    png_set_gray_to_rgb(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    return has_alpha;
}

static void read_orientation(png_structp png, png_infop info, struct burin_picture *picture)
{
    png_uint_32 length = 0;
    png_bytep bytes = NULL;
    if (png_get_eXIf_1(png, info, &length, &bytes))
        picture->orientation = burin_exif_orientation(bytes, length);
}

static enum burin_status read_pixels(
        struct burin_helper *helper,
        png_structp png,
        png_infop info,
        struct burin_picture *picture,
        struct burin_error *err)
{
    png_read_info(png, info);
    const int64_t width = png_get_image_width(png, info);
    const int64_t height = png_get_image_height(png, info);
    const bool has_alpha = set_transforms(png, info);
    enum burin_status status =
            burin_picture_take(helper, picture, width, height, has_alpha ? 4 : 3, err);
    if (status)
        return status;
    if (png_get_rowbytes(png, info) != picture->stride)
        return burin_fail(
                err, BURIN_EFORMAT, "a PNG picture whose rows have %zu bytes, not %zu",
                png_get_rowbytes(png, info), picture->stride);
    png_bytepp rows = BURIN_TAKE(&helper->arena, (size_t)height, png_bytep);
    if (!rows)
        return burin_fail(err, BURIN_ENOMEM, "no memory for %lld rows", (long long)height);
    for (int64_t i = 0; i < height; i++)
        rows[i] = picture->pixels + (size_t)i * picture->stride;
    png_read_image(png, rows);
    png_read_end(png, info); /* what EXIF says may stand behind the pixels */
    read_orientation(png, info, picture);
    if (has_alpha)
        burin_picture_flatten(picture);
    return BURIN_OK;
}

enum burin_status burin_decode_png(
        struct burin_helper *helper,
        struct burin_bytes file,
        struct burin_picture *picture,
        struct burin_error *err)
{
    struct reader reader = { .left = file };
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, leave, ignore);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    enum burin_status status;
    if (!info) {
        status = burin_fail(err, BURIN_ENOMEM, "no memory to read a PNG picture");
        goto out;
    }
    if (setjmp(png_jmpbuf(png))) {
        status = burin_fail(
                err, BURIN_EFORMAT, "a damaged or truncated PNG picture: %s", reader.said);
        goto out;
    }
    png_set_read_fn(png, &reader, read_bytes);
    png_set_user_limits(png, 0x7fffffff, 0x7fffffff); /* burin_picture_take() has ours */
    png_set_chunk_malloc_max(png, MOST_CHUNK_BYTES);
    png_set_chunk_cache_max(png, MOST_CHUNKS);
    status = read_pixels(helper, png, info, picture, err);
out:
    png_destroy_read_struct(&png, &info, NULL);
    return status;
}
