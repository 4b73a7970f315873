#include "runtime/media/helper/helper.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

#include <jerror.h>

struct handler {
    struct jpeg_error_mgr base; /* first: libjpeg hands it back as this */
    jmp_buf leave;
    bool early; /* the data ended before the picture did */
};

static void leave(j_common_ptr jpeg)
{
    longjmp(((struct handler *)jpeg->err)->leave, 1);
}

static void note(j_common_ptr jpeg, int level)
{
    if (level < 0 && jpeg->err->msg_code == JWRN_JPEG_EOF)
        ((struct handler *)jpeg->err)->early = true;
}

static const char *color_name(J_COLOR_SPACE space)
{
    switch (space) {
    case JCS_GRAYSCALE:
        return "grey";
    case JCS_YCbCr:
    case JCS_RGB:
        return "RGB";
    case JCS_CMYK:
    case JCS_YCCK:
        return "CMYK";
    default:
        return NULL;
    }
}

static void read_orientation(
        struct jpeg_decompress_struct *jpeg, struct burin_picture *picture)
{
    for (jpeg_saved_marker_ptr marker = jpeg->marker_list; marker; marker = marker->next)
        if (marker->data_length >= 6 && marker->data[0] == 'E' && marker->data[1] == 'x') {
            picture->orientation =
                    burin_exif_orientation(marker->data, marker->data_length);
            return;
        }
}

static uint8_t times(uint32_t a, uint32_t b) /* a * b / 255, rounded */
{
    const uint32_t product = a * b + 128;
    return (uint8_t)(((product >> 8) + product) >> 8);
}

/* A row of inverted cyan, magenta, yellow and black, as every program writes them, becomes
 * red, green and blue as Pillow has it. */
static void separate(const uint8_t *from, uint8_t *to, int n)
{
    for (int i = 0; i < n; i++, from += 4, to += 3)
        for (int c = 0; c < 3; c++)
            to[c] = (uint8_t)(from[3] - times(255u - from[c], from[3]));
}

static enum burin_status read_pixels(
        struct burin_helper *helper,
        struct jpeg_decompress_struct *jpeg,
        struct burin_picture *picture,
        struct burin_error *err)
{
    const char *color = color_name(jpeg->jpeg_color_space);
    if (!color)
        return burin_fail(
                err, BURIN_EFORMAT,
                "a JPEG picture of %d channels; grey, RGB and CMYK are read",
                jpeg->num_components);
    const bool is_cmyk = color[0] == 'C';
    jpeg->out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
    enum burin_status status = burin_picture_take(
            helper, picture, jpeg->image_width, jpeg->image_height, 3, err);
    uint8_t *line = burin_arena_take(&helper->arena, jpeg->image_width, 4, 1);
    if (!status && !line)
        status = burin_fail(err, BURIN_ENOMEM, "no memory for a row of pixels");
    if (status)
        return status;

    jpeg_start_decompress(jpeg);
    while (jpeg->output_scanline < jpeg->output_height) {
        uint8_t *row = picture->pixels + jpeg->output_scanline * picture->stride;
        uint8_t *into = is_cmyk ? line : row;
        jpeg_read_scanlines(jpeg, &into, 1);
        if (is_cmyk)
            separate(line, row, picture->width);
    }
    return BURIN_OK;
}

enum burin_status burin_decode_jpeg(
        struct burin_helper *helper,
        struct burin_bytes file,
        struct burin_picture *picture,
        struct burin_error *err)
{
    struct jpeg_decompress_struct jpeg;
    struct handler handler = { .early = false };
    enum burin_status status;
    jpeg.err = jpeg_std_error(&handler.base);
    handler.base.error_exit = leave;
    handler.base.emit_message = note;
    jpeg_create_decompress(&jpeg);
    if (setjmp(handler.leave)) {
        char said[JMSG_LENGTH_MAX];
        handler.base.format_message((j_common_ptr)&jpeg, said);
        status = burin_fail(err, BURIN_EFORMAT, "a damaged JPEG picture: %s", said);
        goto out;
    }
    jpeg_mem_src(&jpeg, file.at, file.length);
    jpeg_save_markers(&jpeg, JPEG_APP0 + 1, 0xffff);
    jpeg_read_header(&jpeg, TRUE);
    status = read_pixels(helper, &jpeg, picture, err);
    if (!status)
        read_orientation(&jpeg, picture);
    if (!status && handler.early)
        status = burin_fail(
                err, BURIN_EFORMAT, "a truncated JPEG picture: it ends after %zu bytes",
                file.length);
out:
    jpeg_destroy_decompress(&jpeg);
    return status;
}
