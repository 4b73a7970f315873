/* runtime/media/helper/helper.h -- burin-media: what its decoders share.
 *
 * One call decodes one file and ends. It may hold wrong bytes, too much memory or a hostile
 * mind: that is what the sandbox and the client are for.
 *
 * Memory   Pixels come from the helper's arena, which ends with the process.
 * Threads  One. */
#ifndef BURIN_MEDIA_HELPER_H
#define BURIN_MEDIA_HELPER_H

#include "runtime/base/arena.h"
#include "runtime/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct burin_helper {
    int64_t max_side;   /* pixels */
    int64_t max_pixels; /* of a picture or frame */
    int64_t max_frames; /* of a video */
    struct burin_arena arena;
};

/* The whole input, mapped. */
struct burin_bytes {
    const uint8_t *at;
    size_t length;
};

/* A decoded picture as the file has it: the orientation says how it is to be seen. */
struct burin_picture {
    int width;
    int height;
    size_t stride;   /* bytes from row to row */
    uint8_t *pixels; /* red, green, blue */
    int orientation; /* 1 ... 8, as EXIF has it */
};

/* ---- detect.c ------------------------------------------------------------------------ */

enum burin_file {
    BURIN_FILE_UNKNOWN,
    BURIN_FILE_JPEG,
    BURIN_FILE_PNG,
    BURIN_FILE_WEBP,
    BURIN_FILE_MOV,      /* MP4 and QuickTime */
    BURIN_FILE_MATROSKA, /* and WebM */
    BURIN_FILE_AVI,
};

/* What the first bytes say; the name of a file says nothing. */
enum burin_file burin_detect(struct burin_bytes file);

/* BURIN_EFORMAT: what the file is instead of `wanted`, and what would help. */
enum burin_status burin_refuse_file(
        struct burin_bytes file, const char *wanted, struct burin_error *err);

/* ---- Decoders of pictures, a file each ----------------------------------------------- */

/* BURIN_EFORMAT where the file is damaged or of a kind that isn't read, BURIN_ELIMIT where it
 * is too large, BURIN_ENOMEM. */
enum burin_status burin_decode_jpeg(
        struct burin_helper *helper,
        struct burin_bytes file,
        struct burin_picture *picture,
        struct burin_error *err);
enum burin_status burin_decode_png(
        struct burin_helper *helper,
        struct burin_bytes file,
        struct burin_picture *picture,
        struct burin_error *err);
enum burin_status burin_decode_webp(
        struct burin_helper *helper,
        struct burin_bytes file,
        struct burin_picture *picture,
        struct burin_error *err);

/* ---- picture.c ----------------------------------------------------------------------- */

/* BURIN_ELIMIT for a size beyond the limits. */
enum burin_status burin_picture_check(
        const struct burin_helper *helper,
        int64_t width,
        int64_t height,
        struct burin_error *err);

/* Take room for width x height pixels of `channels` bytes (stride is theirs), or refuse the
 * size. */
enum burin_status burin_picture_take(
        struct burin_helper *helper,
        struct burin_picture *picture,
        int64_t width,
        int64_t height,
        int channels,
        struct burin_error *err);

/* Rows of red, green, blue, alpha become rows of red, green, blue on white, in place. */
void burin_picture_flatten(struct burin_picture *picture);

/* ---- exif.c -------------------------------------------------------------------------- */

/* The orientation in a TIFF structure as EXIF has it, with or without "Exif\0\0" before it; 1
 * where it says none or is malformed. */
int burin_exif_orientation(const uint8_t *bytes, size_t length);

/* ---- send.c -------------------------------------------------------------------------- */

/* All of these write to fd 1, and end the process where nobody reads it. */
void burin_send_picture(
        struct burin_helper *helper, const struct burin_picture *picture, int64_t index);
void burin_send_video(
        int width, int height, int64_t n_frames, int64_t n_declared, double fps);
void burin_send_layers(unsigned layers);
void burin_send_refusal(const struct burin_error *err);

/* ---- video.c ------------------------------------------------------------------------- */

/* What must happen before the sandbox closes. */
void burin_video_prepare(void);

bool burin_video_is_built(void);

/* Say what the video on fd 0 is. */
enum burin_status burin_video_describe(
        struct burin_helper *helper, enum burin_file file, struct burin_error *err);

/* Send the frames of these rising indices. */
enum burin_status burin_video_frames(
        struct burin_helper *helper,
        enum burin_file file,
        const int64_t *indices,
        size_t n_indices,
        struct burin_error *err);

#endif
