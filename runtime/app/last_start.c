/* runtime/app/last_start.c -- What the last start on a GPU that succeeded planned and obtained, kept
 * as text among the user's caches: burin/start/NAME.txt. */
#include "runtime/app/app.h"

#include "runtime/base/caches.h"
#include "runtime/base/json.h"
#include "runtime/base/replace.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_BYTES = 64 * 1024 };

/* False where there is no place for it. */
static bool find_path(const struct burin_app *app, char *path, size_t capacity)
{
    char rest[256];
    const int n = snprintf(rest, sizeof rest, "burin/start/%s.txt", app->model->name);
    return n > 0 && (size_t)n < sizeof rest && burin_cache_path(rest, path, capacity);
}

/* It says of itself that it is a success: starts that fail leave it as it is. */
static const char head[] = "The last start that succeeded: ";

static void write_head(const char *device, FILE *out)
{
    char date[64] = "";
    const time_t now = time(NULL);
    struct tm local;
    if (localtime_r(&now, &local))
        strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S %z", &local);
    fprintf(out, "%s%s, on %s\n", head, date, device);
}

void burin_app_keep_start(const struct burin_app *app, const struct burin_engine *engine)
{
    static char text[MOST_BYTES];
    char path[4096];
    FILE *out = fmemopen(text, sizeof text, "w");
    if (!out)
        return;
    write_head(burin_engine_info(engine).device, out);
    const bool any = burin_engine_start_report(engine, out);
    fclose(out);
    const struct burin_span whole = burin_span_of(text);
    if (any && find_path(app, path, sizeof path))
        burin_replace_file(path, &whole, 1);
}

/* Bytes of it; 0 for whatever else is in its place, of which a FIFO must not be waited for. */
static size_t read_kept(const char *path, char *text, size_t capacity)
{
    struct stat about;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return 0;
    ssize_t n = 0;
    if (!fstat(file, &about) && S_ISREG(about.st_mode))
        n = read(file, text, capacity - 1);
    close(file);
    text[n > 0 ? n : 0] = '\0';
    return strncmp(text, head, sizeof head - 1) == 0 ? strlen(text) : 0;
}

enum burin_status burin_app_show_start(const struct burin_app *app, struct burin_error *err)
{
    static char text[MOST_BYTES];
    char path[4096];
    const size_t n =
            find_path(app, path, sizeof path) ? read_kept(path, text, sizeof text) : 0;
    if (!n)
        return burin_fail(
                err, BURIN_EIO,
                "%s has not started on a GPU yet, as far as its cache knows",
                app->model->name);
    if (!app->settings.json) {
        fputs(text, stdout);
        return BURIN_OK;
    }
    struct burin_json json;
    burin_json_begin(&json, stdout);
    burin_json_open(&json, NULL, '{');
    burin_json_text(&json, "last_start", text, n);
    burin_json_close(&json);
    return BURIN_OK;
}
