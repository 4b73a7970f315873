/* runtime/media/helper/main.c -- burin-media: decodes one foreign file into raw pixels, in a
 * process of its own. wire.h says how it is called and what it answers. */
#include "runtime/media/helper/helper.h"
#include "runtime/media/helper/sandbox.h"
#include "runtime/media/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { COMMAND = 1, MAX_SIDE, MAX_PIXELS, MAX_FRAMES, MEMORY, SECONDS, LIST, N_WORDS };

static enum burin_status map_input(struct burin_bytes *file, struct burin_error *err)
{
    /* Not fstat(): the C library may make a call of it that could stat paths, too. */
    const off_t length = lseek(STDIN_FILENO, 0, SEEK_END);
    *file = (struct burin_bytes){ NULL, 0 };
    if (length < 0)
        return burin_fail(err, BURIN_EUNREADABLE, "no file");
    if (!length)
        return BURIN_OK;
    file->length = (size_t)length;
    file->at = mmap(NULL, file->length, PROT_READ, MAP_PRIVATE, STDIN_FILENO, 0);
    if (file->at == MAP_FAILED)
        return burin_fail(
                err, BURIN_ELIMIT, "%zu bytes are more than can be read at once",
                file->length);
    return BURIN_OK;
}

static enum burin_status send_picture(struct burin_helper *helper, struct burin_error *err)
{
    struct burin_bytes file;
    struct burin_picture picture = { 0 };
    enum burin_status status = map_input(&file, err);
    if (status)
        return status;
    switch (burin_detect(file)) {
    case BURIN_FILE_JPEG:
        status = burin_decode_jpeg(helper, file, &picture, err);
        break;
    case BURIN_FILE_PNG:
        status = burin_decode_png(helper, file, &picture, err);
        break;
    case BURIN_FILE_WEBP:
        status = burin_decode_webp(helper, file, &picture, err);
        break;
    default:
        return burin_refuse_file(file, "picture", err);
    }
    if (!status)
        burin_send_picture(helper, &picture, 0);
    return status;
}

enum { BEGINNING = 4096 };

static size_t read_list(const char *text, int64_t *indices)
{
    size_t n = 0;
    while (*text && n < BURIN_WIRE_FRAMES) {
        char *end;
        indices[n++] = strtoll(text, &end, 10);
        if (end == text)
            return 0;
        text = end + (*end == ',');
    }
    return n;
}

/* The kind of video on fd 0, of which only the beginning is read. */
static enum burin_status detect_video(enum burin_file *kind, struct burin_error *err)
{
    static uint8_t beginning[BEGINNING];
    const ssize_t n = pread(STDIN_FILENO, beginning, sizeof beginning, 0);
    const struct burin_bytes file = { beginning, n > 0 ? (size_t)n : 0 };
    *kind = burin_detect(file);
    if (*kind < BURIN_FILE_MOV)
        return burin_refuse_file(file, "video", err);
    if (!burin_video_is_built())
        return burin_fail(
                err, BURIN_EUNREADABLE,
                "a video, and burin-media was built without FFmpeg's libraries: "
                "tools/packages installs them, then build again");
    return BURIN_OK;
}

static enum burin_status obey(
        struct burin_helper *helper,
        const char *command,
        const char *list,
        unsigned layers,
        struct burin_error *err)
{
    static int64_t indices[BURIN_WIRE_FRAMES];
    enum burin_file kind;
    if (strcmp(command, "picture") == 0)
        return send_picture(helper, err);
    if (strcmp(command, "layers") == 0) {
        burin_send_layers(layers | (burin_video_is_built() ? BURIN_LAYER_VIDEO : 0u));
        return BURIN_OK;
    }
    if (strcmp(command, "try") == 0) {
        if (burin_sandbox_try(list) == 0)
            return burin_fail(err, BURIN_EUNREADABLE, "%s was refused", list);
        burin_send_layers(0); /* it went through */
        return BURIN_OK;
    }
    const enum burin_status status = detect_video(&kind, err);
    if (status)
        return status;
    if (strcmp(command, "video") == 0)
        return burin_video_describe(helper, kind, err);
    if (strcmp(command, "frames") == 0)
        return burin_video_frames(helper, kind, indices, read_list(list, indices), err);
    return burin_fail(err, BURIN_EUSAGE, "no command %s", command);
}

int main(int argc, char **argv)
{
    static struct burin_error err;
    static struct burin_helper helper;
    if (argc != N_WORDS) {
        static const char said[] = "burin-media decodes pictures and video for a Burin "
                                   "binary, which calls it\n";
        (void)!write(STDERR_FILENO, said, sizeof said - 1);
        return burin_exit_code(BURIN_EUSAGE);
    }
    syscall(SYS_close_range, 3u, ~0u, 0u);
    helper.max_side = strtoll(argv[MAX_SIDE], NULL, 10);
    helper.max_pixels = strtoll(argv[MAX_PIXELS], NULL, 10);
    helper.max_frames = strtoll(argv[MAX_FRAMES], NULL, 10);
    const struct burin_sandbox sandbox = { .memory = strtoull(argv[MEMORY], NULL, 10),
                                           .seconds = atoi(argv[SECONDS]) };
    unsigned layers;
    burin_video_prepare();
    enum burin_status status = burin_sandbox_enter(&sandbox, &layers, &err);
    if (!status)
        status = obey(&helper, argv[COMMAND], argv[LIST], layers, &err);
    if (status)
        burin_send_refusal(&err);
    _exit(status ? 1 : 0);
}
