/* runtime/media/media.h -- Pictures and video from files, by way of burin-media: a helper that
 * decodes foreign bytes in a process of its own, in a sandbox, and dies with its file.
 *
 * Found    Beside the running binary.
 * Limits   On sides, pixels and frames before anything is decoded; on the helper's memory and
 *          time. A picture is never held whole here: its rows are resized as they arrive.
 * Memory   What is returned lies in the caller's arena; what was needed on the way is given
 *          back to it.
 * Threads  One at a time on an arena.
 * Errors   All name the file and say what was found. BURIN_EFORMAT: damaged, or of a kind
 *          that isn't read; BURIN_ELIMIT: beyond a limit; BURIN_EMISSING: no such file, or no
 *          helper; BURIN_EUNREADABLE: it can't be opened, or the helper can't read its kind;
 *          BURIN_EIO: the system refused. */
#ifndef BURIN_MEDIA_MEDIA_H
#define BURIN_MEDIA_MEDIA_H

#include "runtime/base/arena.h"
#include "runtime/base/status.h"
#include "runtime/media/fit.h"
#include "runtime/media/patches.h"
#include "runtime/media/sample.h"

#include <stdbool.h>
#include <stdint.h>

struct burin_media {
    char helper[4096]; /* path of burin-media */
    int max_side;      /* pixels */
    int64_t max_pixels;
    int64_t max_frames;  /* of a video */
    int64_t memory;      /* bytes of the helper's address space */
    int picture_seconds; /* that a picture may take */
    int video_seconds;
};

/* The helper beside this binary, with the default limits. BURIN_EMISSING where there is none,
 * with what brings it. */
enum burin_status burin_media_find(struct burin_media *media, struct burin_error *err);

/* The same for a helper at `path`. */
enum burin_status burin_media_at(
        struct burin_media *media, const char *path, struct burin_error *err);

/* What holds in the helper, asked of it itself. BURIN_EIO where it can't close its sandbox: it
 * decodes nothing then. */
struct burin_media_layers {
    bool limits;     /* memory, processor time, files, processes */
    bool privileges; /* none can be gained */
    bool landlock;   /* no path can be opened */
    bool seccomp;    /* system calls by allow-list */
    bool video;      /* no layer: whether video can be decoded */
};
enum burin_status burin_media_layers(
        const struct burin_media *media,
        struct burin_media_layers *layers,
        struct burin_error *err);

/* ---- Pictures ------------------------------------------------------------------------ */

/* A picture as an encoder takes it. */
enum burin_status burin_media_picture(
        const struct burin_media *media,
        const char *path,
        const struct burin_vision *vision,
        struct burin_arena *arena,
        struct burin_patches *picture,
        struct burin_error *err);

/* ---- Video --------------------------------------------------------------------------- */

/* What a video is. */
struct burin_video {
    int width; /* upright */
    int height;
    int64_t n_frames;
    int64_t n_declared; /* frames it says it has, where the file was cut; else 0 */
    double fps;         /* on average; 24 where nothing says it, as the reference has it */
};
enum burin_status burin_media_video(
        const struct burin_media *media,
        const char *path,
        struct burin_video *video,
        struct burin_error *err);

struct burin_clip {
    struct burin_video video;
    int n_frames;                 /* sampled */
    struct burin_patches *frames; /* (n_frames) all of one grid */
    int64_t *indices;             /* (n_frames) where they stand in the video */
    double *seconds;              /* (n_frames) and when: index / fps */
};

/* The sampled frames of a video as an encoder takes them. */
enum burin_status burin_media_clip(
        const struct burin_media *media,
        const char *path,
        const struct burin_vision *vision,
        struct burin_frame_sampling sampling,
        struct burin_arena *arena,
        struct burin_clip *clip,
        struct burin_error *err);

/* ---- Pixels, for both and for tests --------------------------------------------------- */

/* Who takes decoded pixels. `begin` may refuse a picture; `row` gets `height` rows of width *
 * 3 bytes, which live until it returns. */
struct burin_media_sink {
    enum burin_status (*begin)(
            void *context, int64_t index, int width, int height, struct burin_error *err);
    void (*row)(void *context, const uint8_t *rgb);
    void *context;
};

/* All of a picture, or (indices not NULL) these rising frames of a video. */
enum burin_status burin_media_pixels(
        const struct burin_media *media,
        const char *path,
        const int64_t *indices,
        int n_indices,
        const struct burin_media_sink *sink,
        struct burin_arena *arena,
        struct burin_error *err);

/* For tests: let the helper do what its sandbox forbids ("open", "socket", ...; sandbox.c has
 * them all). *refused is false where it went through. */
enum burin_status burin_media_try(
        const struct burin_media *media,
        const char *what,
        bool *refused,
        struct burin_error *err);

#endif
