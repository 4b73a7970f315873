#include "runtime/plan/against.h"

#include "runtime/base/json_scan.h"
#include "runtime/base/units.h"

#include <string.h>

/* ---- Reading ------------------------------------------------------------------------- */

static enum burin_status add(
        struct burin_plan_facts *facts,
        const char *source,
        const char *name,
        struct burin_span text,
        int64_t number,
        struct burin_error *err)
{
    if (facts->n == BURIN_MAX_FACTS)
        return burin_fail(
                err, BURIN_EFORMAT, "%.200s is no plan: it says more than %d things",
                source, BURIN_MAX_FACTS);
    const int at = facts->n++;
    snprintf(facts->facts[at].name, BURIN_FACT_NAME, "%s", name);
    snprintf(
            facts->facts[at].text, BURIN_FACT_TEXT, "%.*s", BURIN_FACT_TEXT - 1,
            burin_show(text).text);
    facts->facts[at].number = number;
    return BURIN_OK;
}

static enum burin_status take_number(
        struct burin_json_scan *scan, int64_t *number, struct burin_error *err)
{
    uint64_t value = 0;
    const enum burin_status status = burin_json_u64(scan, &value, err);
    *number = value > INT64_MAX ? INT64_MAX : (int64_t)value;
    return status;
}

/* A number, text, or true, false and null as text. */
static enum burin_status read_scalar(
        struct burin_plan_facts *facts,
        struct burin_json_scan *scan,
        const char *name,
        struct burin_error *err)
{
    const char first = burin_json_peek(scan);
    struct burin_span text = burin_span_of("");
    int64_t number = 0;
    enum burin_status status;
    if (first == '"')
        status = burin_json_take_text(scan, &text, err);
    else if (first >= '0' && first <= '9')
        status = take_number(scan, &number, err);
    else
        status = burin_json_skip(scan, err);
    if (status)
        return status;
    if (first == 't' || first == 'f' || first == 'n')
        text = burin_span_of(first == 't' ? "yes" : first == 'f' ? "no" : "none");
    else if (first == '"' && !text.length)
        text = burin_span_of("-");
    return add(facts, scan->name, name, text, number, err);
}

/* An element of programs, eager or owners: what names it comes first. */
static enum burin_status read_row(
        struct burin_plan_facts *facts,
        struct burin_json_scan *scan,
        const char *kind,
        struct burin_error *err)
{
    char label[BURIN_FACT_NAME - 24];
    struct burin_span key, text;
    bool more;
    snprintf(label, sizeof label, "%s", kind);
    enum burin_status status = burin_json_enter(scan, '{', err);
    while (!status && !(status = burin_json_member(scan, &key, &more, err)) && more) {
        const size_t used = strlen(label);
        char name[BURIN_FACT_NAME];
        if (burin_span_is(key, "program") || burin_span_is(key, "owner")) {
            status = burin_json_take_text(scan, &text, err);
            if (!status)
                snprintf(
                        label + used, sizeof label - used, " %.32s", burin_show(text).text);
            continue;
        }
        if (burin_span_is(key, "n") && burin_json_peek(scan) != 'n') {
            int64_t n = 0;
            status = take_number(scan, &n, err);
            snprintf(label + used, sizeof label - used, " %lld", (long long)n);
            continue;
        }
        if (burin_span_is(key, "kind")) { /* says how an owner's bytes are known */
            status = burin_json_skip(scan, err);
            continue;
        }
        if (strcmp(kind, "owner") == 0 && burin_span_is(key, "bytes"))
            snprintf(name, sizeof name, "%s", label);
        else
            snprintf(name, sizeof name, "%s %.16s", label, burin_show(key).text);
        status = read_scalar(facts, scan, name, err);
    }
    return status;
}

static enum burin_status read_rows(
        struct burin_plan_facts *facts,
        struct burin_json_scan *scan,
        const char *kind,
        struct burin_error *err)
{
    bool more;
    enum burin_status status = burin_json_enter(scan, '[', err);
    while (!status && !(status = burin_json_element(scan, &more, err)) && more)
        status = read_row(facts, scan, kind, err);
    return status;
}

static enum burin_status read_group(
        struct burin_plan_facts *facts,
        struct burin_json_scan *scan,
        struct burin_span group,
        struct burin_error *err)
{
    struct burin_span key;
    bool more;
    enum burin_status status = burin_json_enter(scan, '{', err);
    while (!status && !(status = burin_json_member(scan, &key, &more, err)) && more) {
        char name[BURIN_FACT_NAME];
        snprintf(
                name, sizeof name, "%.16s %.32s", burin_show(group).text,
                burin_show(key).text);
        status = read_scalar(facts, scan, name, err);
    }
    return status;
}

static enum burin_status read_member(
        struct burin_plan_facts *facts,
        struct burin_json_scan *scan,
        struct burin_span key,
        struct burin_error *err)
{
    char name[BURIN_FACT_NAME];
    if (burin_span_is(key, "advice"))
        return burin_json_skip(scan, err);
    if (burin_span_is(key, "programs"))
        return read_rows(facts, scan, "graph", err);
    if (burin_span_is(key, "eager"))
        return read_rows(facts, scan, "run", err);
    if (burin_span_is(key, "owners"))
        return read_rows(facts, scan, "owner", err);
    if (burin_json_peek(scan) == '{')
        return read_group(facts, scan, key, err);
    if (burin_json_peek(scan) == '[')
        return burin_json_skip(scan, err);
    snprintf(name, sizeof name, "%.48s", burin_show(key).text);
    return read_scalar(facts, scan, name, err);
}

static int find(const struct burin_plan_facts *facts, const char *name)
{
    for (int i = 0; i < facts->n; i++)
        if (strcmp(facts->facts[i].name, name) == 0)
            return i;
    return -1;
}

enum burin_status burin_plan_facts_read(
        struct burin_plan_facts *facts,
        const char *source,
        char *bytes,
        size_t length,
        struct burin_error *err)
{
    struct burin_json_scan scan;
    struct burin_span key;
    bool more;
    facts->n = 0;
    enum burin_status status = burin_json_scan_begin(&scan, source, bytes, length, err);
    if (!status)
        status = burin_json_enter(&scan, '{', err);
    while (!status && !(status = burin_json_member(&scan, &key, &more, err)) && more)
        status = read_member(facts, &scan, key, err);
    if (!status)
        status = burin_json_end(&scan, err);
    if (!status && (find(facts, "total_bytes") < 0 || find(facts, "model") < 0))
        return burin_fail(err, BURIN_EFORMAT, "%.200s is no plan: it has no model", source);
    return status;
}

/* ---- Comparing ------------------------------------------------------------------------ */

static bool is_bytes(const char *name)
{
    return strstr(name, "bytes") || strncmp(name, "owner ", 6) == 0;
}

static void write_value(const struct burin_plan_facts *facts, int i, FILE *out)
{
    const int64_t number = facts->facts[i].number;
    if (facts->facts[i].text[0])
        fprintf(out, "%16s", facts->facts[i].text);
    else
        fprintf(out, "%16s",
                is_bytes(facts->facts[i].name) ? burin_human_bytes(number).text
                                               : burin_grouped(number).text);
}

static void write_change(
        const struct burin_plan_facts *before,
        int was,
        const struct burin_plan_facts *after,
        int is,
        FILE *out)
{
    fprintf(out, "  %-36s", was >= 0 ? before->facts[was].name : after->facts[is].name);
    if (was >= 0)
        write_value(before, was, out);
    else
        fprintf(out, "%16s", "");
    fprintf(out, "  ->");
    if (is >= 0)
        write_value(after, is, out);
    else
        fprintf(out, "%16s", "gone");
    if (was >= 0 && is >= 0 && !before->facts[was].text[0] && !after->facts[is].text[0]) {
        const int64_t more = after->facts[is].number - before->facts[was].number;
        fprintf(out, "   %s%s", more < 0 ? "-" : "+",
                burin_grouped(more < 0 ? -more : more).text);
    }
    fprintf(out, "\n");
}

/* A run that is only in one of the plans: its arena speaks for it. */
static bool is_left_out(const char *name)
{
    const bool run = strncmp(name, "graph ", 6) == 0 || strncmp(name, "run ", 4) == 0;
    return run && !strstr(name, " arena_bytes");
}

void burin_plan_facts_compare(
        const struct burin_plan_facts *before,
        const struct burin_plan_facts *after,
        FILE *out)
{
    int n = 0;
    for (int is = 0; is < after->n; is++) {
        const int was = find(before, after->facts[is].name);
        if (was >= 0 && before->facts[was].number == after->facts[is].number &&
            strcmp(before->facts[was].text, after->facts[is].text) == 0)
            continue;
        if (was >= 0 || !is_left_out(after->facts[is].name))
            write_change(before, was, after, is, out);
        n++;
    }
    for (int was = 0; was < before->n; was++)
        if (find(after, before->facts[was].name) < 0) {
            if (!is_left_out(before->facts[was].name))
                write_change(before, was, after, -1, out);
            n++;
        }
    if (!n)
        fprintf(out, "Nothing changed.\n");
}
