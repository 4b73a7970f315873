#include "runtime/plan/report.h"

#include "runtime/base/units.h"

#include <string.h>

/* Pixels. The bar is the card; labels stand beside it, as near as they go without meeting. */
enum {
    WIDTH = 760,
    TOP = 96,
    BAR_LEFT = 40,
    BAR_WIDTH = 190,
    LABEL_LEFT = 330,
    LABEL_HEIGHT = 34,
    BOTTOM = 56,
    MAX_PARTS = BURIN_MAX_OWNERS + 2,
};

struct part {
    const char *name;
    const char *what;
    const char *fill;
    int64_t bytes;
    enum burin_kind kind;
    bool free; /* nobody's */
    double y;  /* of its middle */
    double label_y;
};

static const char *fill_of(const char *owner)
{
    static const struct {
        const char *owner, *fill;
    } fills[] = {
        { "weights", "#3b6ea5" },       { "kv", "#4c9f70" },
        { "windows", "#7cc49a" },       { "slots", "#7cc49a" },
        { "scans", "#a6d8bb" },         { "drafts", "#cfead9" },
        { "arena", "#e0a03c" },         { "inputs", "#f0c878" },
        { "graphs", "#b5535a" },        { "context", "#8d7a9e" },
        { "modules", "#a998b8" },       { "local memory", "#c3b6cf" },
        { "encoder cache", "#d98e54" }, { "fixed", "#6f7f95" },
    };
    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++)
        if (strcmp(fills[i].owner, owner) == 0)
            return fills[i].fill;
    return "#b0b0a8";
}

/* Whether the bar is what is needed: more than the card may give. Else it is the card. */
static bool exceeds(const struct burin_plan *plan)
{
    return plan->total_bytes > plan->limit_bytes || plan->limit_bytes == INT64_MAX;
}

static int collect(const struct burin_plan *plan, struct part parts[MAX_PARTS])
{
    int n = 0;
    for (int i = 0; i < plan->n_owners; i++)
        if (plan->owners[i].bytes > 0)
            parts[n++] = (struct part){ .name = plan->owners[i].name,
                                        .what = plan->owners[i].what,
                                        .fill = fill_of(plan->owners[i].name),
                                        .bytes = plan->owners[i].bytes,
                                        .kind = plan->owners[i].kind };
    if (plan->limit_bytes == INT64_MAX)
        return n;
    if (plan->limit_bytes > plan->total_bytes)
        parts[n++] = (struct part){ .name = "to spare",
                                    .what = "may be used, and is not needed",
                                    .fill = "#ffffff",
                                    .bytes = plan->limit_bytes - plan->total_bytes,
                                    .free = true };
    if (!exceeds(plan) && plan->card.total_bytes > plan->limit_bytes)
        parts[n++] = (struct part){ .name = "left to others",
                                    .what = "not ours, by the options",
                                    .fill = "#eeeeee",
                                    .bytes = plan->card.total_bytes - plan->limit_bytes,
                                    .free = true };
    return n;
}

/* Labels keep their order and do not meet: down from the top, then up from the bottom. */
static void place(struct part *parts, int n, double height, double scale)
{
    double y = TOP;
    for (int i = 0; i < n; i++) {
        const double own = (double)parts[i].bytes * scale;
        parts[i].y = y + own / 2;
        parts[i].label_y = parts[i].y;
        if (i && parts[i].label_y < parts[i - 1].label_y + LABEL_HEIGHT)
            parts[i].label_y = parts[i - 1].label_y + LABEL_HEIGHT;
        if (!i && parts[i].label_y < TOP + 10)
            parts[i].label_y = TOP + 10;
        y += own;
    }
    double below = TOP + height - 18;
    for (int i = n - 1; i >= 0; i--) {
        if (parts[i].label_y > below)
            parts[i].label_y = below;
        below = parts[i].label_y - LABEL_HEIGHT;
    }
}

static void text_at(
        FILE *out, double x, double y, int size, const char *attributes, const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\"%s>", x, y, size, attributes);
    for (; *text; text++) {
        if (*text == '<' || *text == '>' || *text == '&')
            fprintf(out, "&#%d;", *text);
        else
            fputc(*text, out);
    }
    fprintf(out, "</text>\n");
}

static void draw_part(FILE *out, const struct part *part, double scale)
{
    const double height = (double)part->bytes * scale;
    fprintf(out,
            "<rect x=\"%d\" y=\"%.2f\" width=\"%d\" height=\"%.2f\" fill=\"%s\" "
            "stroke=\"#ffffff\" stroke-width=\"0.5\"/>\n",
            BAR_LEFT, part->y - height / 2, BAR_WIDTH, height, part->fill);
    if (!part->free && part->kind == BURIN_ASSUMED)
        fprintf(out,
                "<rect x=\"%d\" y=\"%.2f\" width=\"%d\" height=\"%.2f\" "
                "fill=\"url(#assumed)\"/>\n",
                BAR_LEFT, part->y - height / 2, BAR_WIDTH, height);
    fprintf(out,
            "<polyline points=\"%d,%.2f %d,%.2f %d,%.2f %d,%.2f\" fill=\"none\" "
            "stroke=\"#999999\"/>\n",
            BAR_LEFT + BAR_WIDTH, part->y, BAR_LEFT + BAR_WIDTH + 14, part->y,
            LABEL_LEFT - 26, part->label_y, LABEL_LEFT - 8, part->label_y);
    char size[64];
    snprintf(
            size, sizeof size, "%s  %s", burin_human_bytes(part->bytes).text,
            part->free ? "" : burin_kind_name(part->kind));
    text_at(out, LABEL_LEFT, part->label_y + 1, 14, " font-weight=\"bold\"", part->name);
    text_at(out, LABEL_LEFT + 130, part->label_y + 1, 14, "", size);
    text_at(out, LABEL_LEFT, part->label_y + 14, 11, " fill=\"#666666\"", part->what);
}

static void draw_limit(
        const struct burin_plan *plan, FILE *out, double scale, int64_t bar_bytes)
{
    char text[160];
    const double y = TOP + (double)plan->limit_bytes * scale;
    fprintf(out,
            "<line x1=\"%d\" y1=\"%.2f\" x2=\"%d\" y2=\"%.2f\" stroke=\"#c00000\" "
            "stroke-width=\"2\" stroke-dasharray=\"6 3\"/>\n",
            BAR_LEFT - 12, y, BAR_LEFT + BAR_WIDTH + 8, y);
    snprintf(
            text, sizeof text, "%s may be used; the bar is %s, %s",
            burin_human_bytes(plan->limit_bytes).text,
            exceeds(plan) ? "not the card but what is needed" : "the card",
            burin_human_bytes(exceeds(plan) ? plan->total_bytes : bar_bytes).text);
    fprintf(out,
            "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#c00000\" "
            "stroke-width=\"2\" stroke-dasharray=\"6 3\"/>\n",
            BAR_LEFT, TOP - 12, BAR_LEFT + 24, TOP - 12);
    text_at(out, BAR_LEFT + 32, TOP - 8, 12, " fill=\"#c00000\"", text);
}

static void draw_titles(const struct burin_plan *plan, FILE *out, int height)
{
    char title[160], verdict[160];
    const int title_chars = 48; /* at 20 pixels, bold; more of them are smaller */
    snprintf(title, sizeof title, "%s on %s", plan->model->name, plan->card.name);
    if (plan->limit_bytes == INT64_MAX)
        snprintf(
                verdict, sizeof verdict, "needs %s; no limit is known",
                burin_human_bytes(plan->total_bytes).text);
    else if (plan->fits)
        snprintf(
                verdict, sizeof verdict, "fits: KV for %s tokens, %d sequence%s at once",
                burin_grouped(plan->kv_tokens).text, plan->n_sequences,
                plan->n_sequences == 1 ? "" : "s");
    else if (!exceeds(plan))
        snprintf(
                verdict, sizeof verdict,
                "refused: its graphs are %s above a quarter of the card",
                burin_human_bytes(plan->short_by_bytes).text);
    else
        snprintf(
                verdict, sizeof verdict, "does not fit: %s are missing",
                burin_human_bytes(plan->short_by_bytes).text);
    const int length = (int)strlen(title);
    text_at(out, BAR_LEFT, 36, length > title_chars ? 20 * title_chars / length : 20,
            " font-weight=\"bold\"", title);
    text_at(out, BAR_LEFT, 60, 14, plan->fits ? "" : " fill=\"#c00000\"", verdict);
    fprintf(out,
            "<rect x=\"%d\" y=\"%d\" width=\"16\" height=\"12\" fill=\"#888888\"/>\n"
            "<rect x=\"%d\" y=\"%d\" width=\"16\" height=\"12\" fill=\"#888888\"/>\n"
            "<rect x=\"%d\" y=\"%d\" width=\"16\" height=\"12\" fill=\"url(#assumed)\"/>\n",
            BAR_LEFT, height - 30, BAR_LEFT + 330, height - 30, BAR_LEFT + 330,
            height - 30);
    text_at(out, BAR_LEFT + 24, height - 20, 12, "",
            "derived: follows from the model and the options");
    text_at(out, BAR_LEFT + 354, height - 20, 12, "",
            "assumed: the worst known, or told by --assume");
}

void burin_plan_svg(const struct burin_plan *plan, FILE *out)
{
    struct part parts[MAX_PARTS];
    const int n = collect(plan, parts);
    const int least = n * LABEL_HEIGHT + 20;
    const int bar = least > 440 ? least : 440;
    const int height = TOP + bar + BOTTOM;
    int64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += parts[i].bytes;
    const double scale = sum ? (double)bar / (double)sum : 0;
    place(parts, n, bar, scale);

    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"DejaVu Sans, Verdana, Arial, sans-serif\" "
            "fill=\"#222222\">\n"
            "<defs><pattern id=\"assumed\" width=\"6\" height=\"6\" "
            "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
            "<rect width=\"2\" height=\"6\" fill=\"#ffffff\" fill-opacity=\"0.55\"/>"
            "</pattern></defs>\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
            WIDTH, height, WIDTH, height, WIDTH, height);
    for (int i = 0; i < n; i++)
        draw_part(out, &parts[i], scale);
    fprintf(out,
            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" "
            "stroke=\"#444444\"/>\n",
            BAR_LEFT, TOP, BAR_WIDTH, bar);
    if (plan->limit_bytes != INT64_MAX)
        draw_limit(plan, out, scale, sum);
    draw_titles(plan, out, height);
    fprintf(out, "</svg>\n");
}
