#include "runtime/media/helper/helper.h"

#include "runtime/media/wire.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void send_bytes(const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    while (length) {
        const ssize_t n = write(STDOUT_FILENO, at, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            _exit(1);
        at += n;
        length -= (size_t)n;
    }
}

static void send_header(struct burin_wire header)
{
    header.magic = BURIN_WIRE_MAGIC;
    send_bytes(&header, sizeof header);
}

/* Where the pixel at (x, y) of the upright picture stands in the file's: the start, and the
 * steps of one column and one row. */
struct walk {
    const uint8_t *begin;
    ptrdiff_t column;
    ptrdiff_t row;
};

static struct walk choose_walk(const struct burin_picture *picture)
{
    const int o = picture->orientation;
    const bool from_right = o == 2 || o == 3 || o == 7 || o == 8;
    const bool from_below = o == 3 || o == 4 || o == 6 || o == 7;
    const ptrdiff_t x = from_right ? -3 : 3;
    const ptrdiff_t y =
            from_below ? -(ptrdiff_t)picture->stride : (ptrdiff_t)picture->stride;
    const uint8_t *begin = picture->pixels;
    if (from_right)
        begin += (size_t)(picture->width - 1) * 3;
    if (from_below)
        begin += (size_t)(picture->height - 1) * picture->stride;
    return o >= 5 ? (struct walk){ begin, y, x } : (struct walk){ begin, x, y };
}

void burin_send_picture(
        struct burin_helper *helper, const struct burin_picture *picture, int64_t index)
{
    const bool is_turned = picture->orientation >= 5;
    const int width = is_turned ? picture->height : picture->width;
    const int height = is_turned ? picture->width : picture->height;
    send_header((struct burin_wire){ .kind = BURIN_WIRE_PICTURE,
                                     .width = (uint32_t)width,
                                     .height = (uint32_t)height,
                                     .index = index });

    const struct burin_arena_mark mark = burin_arena_mark(&helper->arena);
    uint8_t *line = burin_arena_take(&helper->arena, (size_t)width, 3, 1);
    if (!line)
        _exit(1);
    const struct walk walk = choose_walk(picture);
    for (int y = 0; y < height; y++) {
        const uint8_t *from = walk.begin + y * walk.row;
        for (int x = 0; x < width; x++)
            memcpy(line + 3 * (size_t)x, from + x * walk.column, 3);
        send_bytes(line, (size_t)width * 3);
    }
    burin_arena_rewind(&helper->arena, mark);
}

void burin_send_video(
        int width, int height, int64_t n_frames, int64_t n_declared, double fps)
{
    send_header((struct burin_wire){ .kind = BURIN_WIRE_VIDEO,
                                     .width = (uint32_t)width,
                                     .height = (uint32_t)height,
                                     .n_frames = n_frames,
                                     .n_declared = n_declared,
                                     .fps = fps });
}

void burin_send_layers(unsigned layers)
{
    send_header((struct burin_wire){ .kind = BURIN_WIRE_LAYERS, .layers = layers });
}

void burin_send_refusal(const struct burin_error *err)
{
    const size_t length = strnlen(err->message, BURIN_WIRE_TEXT);
    send_header((struct burin_wire){ .kind = BURIN_WIRE_REFUSED,
                                     .status = err->status,
                                     .n_bytes = (uint32_t)length });
    send_bytes(err->message, length);
}
