/* runtime/media/wire.h -- What burin-media writes to its pipe.
 *
 * A call    burin-media COMMAND MAX_SIDE MAX_PIXELS MAX_FRAMES MEMORY SECONDS [LIST]
 *               picture       fd 0 is a picture
 *               video         fd 0 is a video: what it is
 *               frames        fd 0 is a video: the frames of LIST, rising, "0,12,24"
 *               layers        which layers of the sandbox hold
 *               try           do what the sandbox forbids: LIST names it
 *           It reads fd 0, writes fd 1, and sees no environment.
 *
 * An answer One header, then what its kind says. `frames` answers with a PICTURE each. All of
 *           it is the byte order of the machine: both ends run on it.
 *
 * Trust     The helper has read foreign bytes: its reader checks every number. */
#ifndef BURIN_MEDIA_WIRE_H
#define BURIN_MEDIA_WIRE_H

#include <stdint.h>

#define BURIN_WIRE_MAGIC 0x31617669u

enum burin_wire_kind {
    BURIN_WIRE_PICTURE = 1, /* height rows of width * 3 bytes follow: red, green, blue */
    BURIN_WIRE_VIDEO,       /* nothing follows */
    BURIN_WIRE_LAYERS,      /* nothing follows */
    BURIN_WIRE_REFUSED,     /* n_bytes of text follow: why */
};

/* Bits of `layers`. */
enum burin_media_layer {
    BURIN_LAYER_LIMITS = 1,     /* memory, processor time, files, processes */
    BURIN_LAYER_PRIVILEGES = 2, /* none may be gained */
    BURIN_LAYER_LANDLOCK = 4,   /* no path can be opened */
    BURIN_LAYER_SECCOMP = 8,    /* system calls by allow-list */
    BURIN_LAYER_VIDEO = 16,     /* no layer: FFmpeg was there when it was built */
};

enum {
    BURIN_WIRE_TEXT = 512,    /* bytes of a refusal at most */
    BURIN_WIRE_FRAMES = 4096, /* in a LIST at most */
};

struct burin_wire {
    uint32_t magic;
    uint32_t kind;   /* enum burin_wire_kind */
    uint32_t status; /* REFUSED: enum burin_status */
    uint32_t layers; /* LAYERS */
    uint32_t width;  /* PICTURE, VIDEO: as it is to be seen, turned upright */
    uint32_t height;
    uint32_t n_bytes; /* REFUSED */
    uint32_t unused;
    int64_t index;    /* PICTURE: of a frame */
    int64_t n_frames; /* VIDEO: frames that are there */
    int64_t n_declared; /* VIDEO: frames an MP4 file says it has, where some aren't there; 0 */
    double fps;         /* VIDEO: on average; 0 where nothing says it */
};

#endif
