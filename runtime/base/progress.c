#include "runtime/base/progress.h"

#include "runtime/base/clock.h"
#include "runtime/base/units.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    FIRST_MS = 300,
    TERMINAL_EVERY_MS = 100,
    PLAIN_EVERY_MS = 5000,
    MAX_BAR = 40,
    AROUND_BAR = 60, /* columns for the text beside the bar */
};

void burin_progress_begin(
        struct burin_progress *bar,
        FILE *out,
        const char *what,
        enum burin_count count,
        bool verbose)
{
    *bar = (struct burin_progress){
        .out = out,
        .what = what,
        .count = count,
        .terminal = isatty(fileno(out)) == 1,
        .verbose = verbose,
        .began_ms = burin_now_ms(),
    };
    bar->drawn_ms = bar->began_ms;
}

static int bar_width(const struct burin_progress *bar)
{
    struct winsize size = { .ws_col = 80 };
    if (ioctl(fileno(bar->out), TIOCGWINSZ, &size) || size.ws_col == 0)
        size.ws_col = 80;
    const int width = (int)size.ws_col - AROUND_BAR - (int)strlen(bar->what);
    return width < 4 ? 0 : width > MAX_BAR ? MAX_BAR : width;
}

static void draw(struct burin_progress *bar, int64_t done, int64_t total, double now)
{
    const double share = total > 0 ? (double)done / (double)total : 0.0;
    const bool bytes = bar->count == BURIN_COUNT_BYTES;
    const struct burin_text24 have = bytes ? burin_human_bytes(done) : burin_grouped(done);
    const struct burin_text24 all = bytes ? burin_human_bytes(total) : burin_grouped(total);

    if (bar->terminal) {
        const int width = bar_width(bar);
        const int full = (int)(share * width);
        fprintf(bar->out, "\r%s ", bar->what);
        if (width) {
            fputc('[', bar->out);
            for (int i = 0; i < width; i++)
                fputc(i < full ? '#' : ' ', bar->out);
            fputs("] ", bar->out);
        }
    } else {
        fprintf(bar->out, "%s: ", bar->what);
    }
    fprintf(bar->out, "%3.0f %%  %s of %s", 100 * share, have.text, all.text);
    if (bytes && now > bar->began_ms)
        fprintf(bar->out, "  %s/s",
                burin_human_bytes((int64_t)((double)done / (now - bar->began_ms) * 1e3))
                        .text);
    const double left_s = share > 0 ? (now - bar->began_ms) * (1 - share) / share / 1e3 : 0;
    if (share > 0.02)
        fprintf(bar->out, "  %.0f s left", left_s);
    fputs(bar->terminal ? "\033[K" : "\n", bar->out);
    fflush(bar->out);
    bar->drawn = true;
    bar->drawn_ms = now;
}

void burin_progress_update(struct burin_progress *bar, int64_t done, int64_t total)
{
    if (!bar->terminal && !bar->verbose)
        return;
    const double now = burin_now_ms();
    const double wait = !bar->terminal ? PLAIN_EVERY_MS
                        : bar->drawn   ? TERMINAL_EVERY_MS
                                       : FIRST_MS;
    if (now - bar->drawn_ms >= wait)
        draw(bar, done, total, now);
}

void burin_progress_end(struct burin_progress *bar)
{
    if (bar->terminal && bar->drawn) {
        fputs("\r\033[K", bar->out);
        fflush(bar->out);
    }
    bar->drawn = false;
}
