#include "runtime/media/call.h"

#include "runtime/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Beginning ------------------------------------------------------------------------ */

/* A read-only descriptor of a regular file; of nothing for "". */
static enum burin_status open_file(
        const struct burin_media_call *call,
        const char *path,
        int *fd,
        struct burin_error *err)
{
    struct stat found;
    *fd = open(*path ? path : "/dev/null", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0)
        return burin_fail(
                err,
                errno == ENOENT || errno == ENOTDIR ? BURIN_EMISSING : BURIN_EUNREADABLE,
                "%s: %s", call->path.text, strerror(errno));
    if (*path && (fstat(*fd, &found) || !S_ISREG(found.st_mode))) {
        close(*fd);
        return burin_fail(err, BURIN_EUNREADABLE, "%s is no file", call->path.text);
    }
    return BURIN_OK;
}

/* The helper with `in` as its input and a pipe as its output; no environment. */
static enum burin_status spawn(
        struct burin_media_call *call,
        const char *const *words,
        int in,
        struct burin_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return burin_fail(
                err, BURIN_EIO, "%s: no pipe: %s", call->path.text, strerror(errno));
    (void)fcntl(ends[0], F_SETPIPE_SZ, 1 << 20);

    posix_spawn_file_actions_t actions;
    char *const nothing[] = { NULL };
    int code = posix_spawn_file_actions_init(&actions);
    if (!code) {
        code = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
        if (!code)
            code = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        if (!code)
            code = posix_spawn_file_actions_addopen(
                    &actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        if (!code)
            code = posix_spawn(
                    &call->process, call->media->helper, &actions, NULL,
                    (char *const *)(uintptr_t)words, nothing);
        posix_spawn_file_actions_destroy(&actions);
    }
    close(ends[1]);
    if (code) {
        close(ends[0]);
        call->process = 0;
        return burin_fail(
                err, BURIN_EMISSING, "%s can't be started: %s", call->media->helper,
                strerror(code));
    }
    call->pipe = ends[0];
    return BURIN_OK;
}

enum burin_status burin_media_call_begin(
        struct burin_media_call *call,
        const struct burin_media *media,
        const char *command,
        const char *path,
        const char *list,
        int seconds,
        struct burin_error *err)
{
    *call = (struct burin_media_call){
        .media = media,
        .path = burin_show(burin_span_of(*path ? path : "burin-media")),
        .seconds = seconds,
        .deadline_ms = burin_now_ms() + seconds * 1e3,
        .pipe = -1,
    };
    int in;
    enum burin_status status = open_file(call, path, &in, err);
    if (status)
        return status;

    char numbers[5][24];
    const int64_t limits[5] = { media->max_side, media->max_pixels, media->max_frames,
                                media->memory, seconds };
    for (int i = 0; i < 5; i++)
        snprintf(numbers[i], sizeof numbers[i], "%lld", (long long)limits[i]);
    const char *const words[] = { "burin-media", command,    numbers[0],
                                  numbers[1],    numbers[2], numbers[3],
                                  numbers[4],    list,       NULL };
    status = spawn(call, words, in, err);
    close(in);
    return status;
}

/* ---- Ending --------------------------------------------------------------------------- */

void burin_media_call_end(struct burin_media_call *call)
{
    if (!call->process)
        return;
    close(call->pipe);
    kill(call->process, SIGKILL);
    while (waitpid(call->process, NULL, 0) < 0 && errno == EINTR)
        continue;
    call->process = 0;
}

static enum burin_status too_slow(
        const struct burin_media_call *call, struct burin_error *err)
{
    return burin_fail(
            err, BURIN_ELIMIT,
            "%s: decoding took longer than %d seconds; a smaller picture or a shorter "
            "video takes less",
            call->path.text, call->seconds);
}

/* The helper wrote less than it should: why it ended. */
static enum burin_status explain(struct burin_media_call *call, struct burin_error *err)
{
    int how = 0;
    const pid_t process = call->process;
    close(call->pipe);
    call->process = 0;
    while (waitpid(process, &how, 0) < 0 && errno == EINTR)
        continue;
    const int by = WIFSIGNALED(how) ? WTERMSIG(how) : 0;
    if (by == SIGXCPU || by == SIGKILL)
        return too_slow(call, err);
    if (by == SIGSYS)
        return burin_fail(
                err, BURIN_EFORMAT,
                "%s: its decoder asked for what the sandbox forbids and was ended: the "
                "file is "
                "damaged or means harm",
                call->path.text);
    if (by)
        return burin_fail(
                err, BURIN_EFORMAT,
                "%s: its decoder crashed (%s): the file is damaged or means harm",
                call->path.text, strsignal(by));
    return burin_fail(
            err, BURIN_EFORMAT, "%s: burin-media ended early (exit code %d)",
            call->path.text, WEXITSTATUS(how));
}

/* ---- Reading -------------------------------------------------------------------------- */

enum burin_status burin_media_call_bytes(
        struct burin_media_call *call, void *bytes, size_t length, struct burin_error *err)
{
    uint8_t *at = bytes;
    while (length) {
        const double left_ms = call->deadline_ms - burin_now_ms();
        if (left_ms <= 0)
            return too_slow(call, err);
        struct pollfd wait = { .fd = call->pipe, .events = POLLIN };
        const int ready = poll(&wait, 1, (int)left_ms + 1);
        const ssize_t n = ready > 0 ? read(call->pipe, at, length) : 0;
        if (ready < 0 || n < 0) {
            if (errno == EINTR)
                continue;
            return burin_fail(
                    err, BURIN_EIO, "%s: reading its pixels: %s", call->path.text,
                    strerror(errno));
        }
        if (ready && !n)
            return explain(call, err);
        at += n;
        length -= (size_t)n;
    }
    return BURIN_OK;
}

static enum burin_status refused(
        struct burin_media_call *call,
        const struct burin_wire *header,
        struct burin_error *err)
{
    char text[BURIN_WIRE_TEXT + 1] = "";
    if (header->n_bytes > BURIN_WIRE_TEXT || header->status == BURIN_OK ||
        header->status > BURIN_ESTOPPED)
        return burin_fail(
                err, BURIN_EFORMAT, "%s: burin-media answers nonsense", call->path.text);
    const enum burin_status status =
            burin_media_call_bytes(call, text, header->n_bytes, err);
    if (status)
        return status;
    return burin_fail(
            err, (enum burin_status)header->status, "%s: %s", call->path.text, text);
}

static bool is_sane(const struct burin_media *media, const struct burin_wire *header)
{
    const int64_t width = header->width, height = header->height;
    const bool has_size = width >= 1 && height >= 1 && width <= media->max_side &&
                          height <= media->max_side && width * height <= media->max_pixels;
    switch (header->kind) {
    case BURIN_WIRE_PICTURE:
        return has_size;
    case BURIN_WIRE_VIDEO:
        return has_size && header->n_frames >= 1 && header->n_frames <= media->max_frames &&
               header->n_declared >= 0 && header->fps >= 0 && header->fps < 1e6;
    default:
        return true;
    }
}

enum burin_status burin_media_call_header(
        struct burin_media_call *call,
        enum burin_wire_kind kind,
        struct burin_wire *header,
        struct burin_error *err)
{
    const enum burin_status status =
            burin_media_call_bytes(call, header, sizeof *header, err);
    if (status)
        return status;
    if (header->magic == BURIN_WIRE_MAGIC && header->kind == BURIN_WIRE_REFUSED)
        return refused(call, header, err);
    if (header->magic != BURIN_WIRE_MAGIC || header->kind != kind ||
        !is_sane(call->media, header))
        return burin_fail(
                err, BURIN_EFORMAT, "%s: burin-media answers nonsense", call->path.text);
    return BURIN_OK;
}
