#include "runtime/media/media.h"

#include "runtime/base/put.h"
#include "runtime/media/call.h"
#include "runtime/media/resize.h"
#include "runtime/media/wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_FPS = 24, SHORT_SECONDS = 10 };

static const struct burin_media defaults = {
    .max_side = 65535,
    .max_pixels = 1 << 27,
    .max_frames = 1 << 20,
    .memory = (int64_t)2 << 30,
    .picture_seconds = 60,
    .video_seconds = 300,
};

/* ---- The helper ------------------------------------------------------------------------ */

enum burin_status burin_media_at(
        struct burin_media *media, const char *path, struct burin_error *err)
{
    *media = defaults;
    if (strlen(path) >= sizeof media->helper)
        return burin_fail(err, BURIN_ELIMIT, "the path of burin-media is too long");
    snprintf(media->helper, sizeof media->helper, "%s", path);
    if (access(path, X_OK))
        return burin_fail(
                err, BURIN_EMISSING,
                "%s, which decodes pictures and video, is not there: %s; tools/packages "
                "installs its libraries, then `build` makes it",
                burin_show(burin_span_of(path)).text, strerror(errno));
    return BURIN_OK;
}

enum burin_status burin_media_find(struct burin_media *media, struct burin_error *err)
{
    char path[sizeof media->helper];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    if (n < 0 || (size_t)n >= sizeof path)
        return burin_fail(
                err, BURIN_EIO, "where this binary lies, and burin-media beside it: %s",
                strerror(n < 0 ? errno : ENAMETOOLONG));
    struct burin_put text = { path, sizeof path, (size_t)n };
    while (text.used && path[text.used - 1] != '/')
        text.used--;
    burin_put(&text, "burin-media");
    return burin_media_at(media, path, err);
}

enum burin_status burin_media_layers(
        const struct burin_media *media,
        struct burin_media_layers *layers,
        struct burin_error *err)
{
    struct burin_media_call call;
    struct burin_wire header;
    enum burin_status status =
            burin_media_call_begin(&call, media, "layers", "", "", SHORT_SECONDS, err);
    if (!status)
        status = burin_media_call_header(&call, BURIN_WIRE_LAYERS, &header, err);
    burin_media_call_end(&call);
    if (status)
        return status;
    *layers = (struct burin_media_layers){
        .limits = header.layers & BURIN_LAYER_LIMITS,
        .privileges = header.layers & BURIN_LAYER_PRIVILEGES,
        .landlock = header.layers & BURIN_LAYER_LANDLOCK,
        .seccomp = header.layers & BURIN_LAYER_SECCOMP,
        .video = header.layers & BURIN_LAYER_VIDEO,
    };
    return BURIN_OK;
}

enum burin_status burin_media_try(
        const struct burin_media *media,
        const char *what,
        bool *refused,
        struct burin_error *err)
{
    struct burin_media_call call;
    struct burin_wire header;
    enum burin_status status =
            burin_media_call_begin(&call, media, "try", "", what, SHORT_SECONDS, err);
    if (!status) {
        *refused =
                burin_media_call_header(&call, BURIN_WIRE_LAYERS, &header, err) != BURIN_OK;
        burin_media_call_end(&call);
    }
    return status;
}

/* ---- Pixels ---------------------------------------------------------------------------- */

static enum burin_status take_picture(
        struct burin_media_call *call,
        int64_t index,
        const struct burin_media_sink *sink,
        struct burin_arena *arena,
        struct burin_error *err)
{
    struct burin_wire header;
    enum burin_status status =
            burin_media_call_header(call, BURIN_WIRE_PICTURE, &header, err);
    if (!status && header.index != index)
        status = burin_fail(
                err, BURIN_EFORMAT, "%s: burin-media answers nonsense", call->path.text);
    if (status)
        return status;

    const size_t row = (size_t)header.width * 3;
    struct burin_error why = { 0 };
    status = sink->begin(sink->context, index, (int)header.width, (int)header.height, &why);
    if (status)
        return burin_fail(err, status, "%s: %s", call->path.text, why.message);
    const struct burin_arena_mark mark = burin_arena_mark(arena);
    uint8_t *line = burin_arena_take(arena, row, 1, 64);
    if (!line)
        status = burin_fail(
                err, BURIN_ENOMEM, "%s: no memory for a row of it", call->path.text);
    for (uint32_t y = 0; !status && y < header.height; y++) {
        status = burin_media_call_bytes(call, line, row, err);
        if (!status)
            sink->row(sink->context, line);
    }
    burin_arena_rewind(arena, mark);
    return status;
}

enum burin_status burin_media_pixels(
        const struct burin_media *media,
        const char *path,
        const int64_t *indices,
        int n_indices,
        const struct burin_media_sink *sink,
        struct burin_arena *arena,
        struct burin_error *err)
{
    enum { INDEX_BYTES = 21 };
    static const int64_t whole[] = { 0 };
    const struct burin_arena_mark mark = burin_arena_mark(arena);
    const size_t size = (size_t)(indices ? n_indices : 0) * INDEX_BYTES + 1;
    struct burin_put list = { BURIN_TAKE(arena, size, char), size, 0 };
    if (!list.bytes)
        return burin_fail(err, BURIN_ENOMEM, "no memory for %d frames", n_indices);
    for (int i = 0; indices && i < n_indices; i++)
        burin_put(&list, "%s%lld", i ? "," : "", (long long)indices[i]);

    struct burin_media_call call;
    enum burin_status status = burin_media_call_begin(
            &call, media, indices ? "frames" : "picture", path, list.bytes,
            indices ? media->video_seconds : media->picture_seconds, err);
    if (!indices)
        n_indices = 1;
    for (int i = 0; !status && i < n_indices; i++)
        status = take_picture(&call, (indices ? indices : whole)[i], sink, arena, err);
    burin_media_call_end(&call);
    burin_arena_rewind(arena, mark);
    return status;
}

/* ---- Patches --------------------------------------------------------------------------- */

/* A sink that makes patches of pictures. `room` holds what resizing one takes. */
struct filling {
    const struct burin_vision *vision;
    struct burin_patches *pictures;
    int n_pictures;
    int n_done;
    struct burin_arena *arena; /* of their pixels */
    struct burin_arena room;
    struct burin_resize resize;
};

static void fill_row(void *context, int row, const uint8_t *rgb)
{
    struct filling *filling = context;
    burin_patches_fill(&filling->pictures[filling->n_done - 1], filling->vision, row, rgb);
}

static enum burin_status begin_patches(
        void *context, int64_t index, int width, int height, struct burin_error *err)
{
    struct filling *filling = context;
    struct burin_grid grid;
    struct burin_patches *picture = &filling->pictures[filling->n_done];
    enum burin_status status = burin_fit(filling->vision, width, height, &grid, err);
    if (status)
        return status;
    const struct burin_grid first = filling->pictures[0].grid;
    if (filling->n_done && (grid.rows != first.rows || grid.columns != first.columns))
        return burin_fail(
                err, BURIN_EFORMAT,
                "a video whose frames are of several shapes: frame %lld is %d x %d",
                (long long)index, width, height);
    status = burin_patches_take(picture, filling->vision, grid, filling->arena, err);
    if (status)
        return status;
    filling->n_done++;
    const int side = burin_vision_side(filling->vision);
    burin_arena_close(&filling->room);
    return burin_resize_begin(
            &filling->resize, &filling->room, width, height, grid.columns * side,
            grid.rows * side, fill_row, filling, err);
}

static void take_row(void *context, const uint8_t *rgb)
{
    struct filling *filling = context;
    burin_resize_row(&filling->resize, rgb);
}

/* The pixels of a picture or of frames into patches. Rows pass through an arena of their own, so
 * that `arena` holds patches and nothing else. */
static enum burin_status fill_patches(
        const struct burin_media *media,
        const char *path,
        const int64_t *indices,
        struct filling *filling,
        struct burin_error *err)
{
    struct burin_arena rows = { 0 };
    const struct burin_media_sink sink = { begin_patches, take_row, filling };
    const enum burin_status status = burin_media_pixels(
            media, path, indices, filling->n_pictures, &sink, &rows, err);
    burin_arena_close(&filling->room);
    burin_arena_close(&rows);
    return status;
}

enum burin_status burin_media_picture(
        const struct burin_media *media,
        const char *path,
        const struct burin_vision *vision,
        struct burin_arena *arena,
        struct burin_patches *picture,
        struct burin_error *err)
{
    struct filling filling = {
        .vision = vision, .pictures = picture, .n_pictures = 1, .arena = arena
    };
    *picture = (struct burin_patches){ 0 };
    return fill_patches(media, path, NULL, &filling, err);
}

/* ---- Video ----------------------------------------------------------------------------- */

enum burin_status burin_media_video(
        const struct burin_media *media,
        const char *path,
        struct burin_video *video,
        struct burin_error *err)
{
    struct burin_media_call call;
    struct burin_wire header;
    enum burin_status status = burin_media_call_begin(
            &call, media, "video", path, "", media->video_seconds, err);
    if (!status)
        status = burin_media_call_header(&call, BURIN_WIRE_VIDEO, &header, err);
    burin_media_call_end(&call);
    if (status)
        return status;
    *video = (struct burin_video){ .width = (int)header.width,
                                   .height = (int)header.height,
                                   .n_frames = header.n_frames,
                                   .n_declared = header.n_declared,
                                   .fps = header.fps > 0 ? header.fps : DEFAULT_FPS };
    return BURIN_OK;
}

enum burin_status burin_media_clip(
        const struct burin_media *media,
        const char *path,
        const struct burin_vision *vision,
        struct burin_frame_sampling sampling,
        struct burin_arena *arena,
        struct burin_clip *clip,
        struct burin_error *err)
{
    enum burin_status status = burin_media_video(media, path, &clip->video, err);
    if (status)
        return status;
    const struct burin_video *video = &clip->video;
    const int64_t n = burin_sample_count(sampling, video->n_frames, video->fps);
    if (n > BURIN_WIRE_FRAMES)
        return burin_fail(
                err, BURIN_ELIMIT,
                "%s: %lld frames would be looked at, at most %d are: give fewer "
                "--video-frames",
                burin_show(burin_span_of(path)).text, (long long)n, BURIN_WIRE_FRAMES);
    clip->n_frames = (int)n;
    clip->frames = BURIN_TAKE(arena, (size_t)n, struct burin_patches);
    clip->indices = BURIN_TAKE(arena, (size_t)n, int64_t);
    clip->seconds = BURIN_TAKE(arena, (size_t)n, double);
    if (!clip->frames || !clip->indices || !clip->seconds)
        return burin_fail(err, BURIN_ENOMEM, "no memory for %lld frames", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        clip->indices[i] = burin_sample_index(sampling, i, n, video->n_frames);
        clip->seconds[i] = (double)clip->indices[i] / video->fps;
    }
    struct filling filling = { .vision = vision,
                               .pictures = clip->frames,
                               .n_pictures = clip->n_frames,
                               .arena = arena };
    return fill_patches(media, path, clip->indices, &filling, err);
}
