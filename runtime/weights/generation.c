#include "runtime/weights/generation.h"

#include "runtime/base/json_scan.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char file_name[] = "generation_config.json";
enum { MAX_CONFIG = 1 << 20 };

const struct burin_generation burin_generation_unsaid = {
    .temperature = NAN,
    .top_k = NAN,
    .top_p = NAN,
    .min_p = NAN,
};

static void add_stop(struct burin_generation *generation, uint64_t id)
{
    if (id < INT_MAX && generation->n_stops < BURIN_GENERATION_STOPS)
        generation->stops[generation->n_stops++] = (int32_t)id;
}

/* ---- generation_config.json --------------------------------------------------------- */

/* One id, or a list of them. */
static enum burin_status read_stops(
        struct burin_generation *generation,
        struct burin_json_scan *scan,
        struct burin_error *err)
{
    enum burin_status status = BURIN_OK;
    uint64_t id;
    bool more = true;

    if (burin_json_peek(scan) != '[') {
        status = burin_json_u64(scan, &id, err);
        if (!status)
            add_stop(generation, id);
        return status;
    }
    status = burin_json_enter(scan, '[', err);
    while (!status && !(status = burin_json_element(scan, &more, err)) && more) {
        status = burin_json_u64(scan, &id, err);
        if (!status)
            add_stop(generation, id);
    }
    return status;
}

static enum burin_status read_number(
        double *number,
        struct burin_json_scan *scan,
        struct burin_span key,
        struct burin_error *err)
{
    char copy[40];
    burin_json_peek(scan);
    const char *begin = scan->at;
    const enum burin_status status = burin_json_skip(scan, err);
    const size_t length = (size_t)(scan->at - begin);
    if (status)
        return status;

    if (length < sizeof copy && strchr("-0123456789", *begin)) {
        memcpy(copy, begin, length);
        copy[length] = '\0';
        *number = strtod(copy, NULL);
        if (*number >= 0 && *number <= 1 << 30)
            return BURIN_OK;
    }
    return burin_fail(
            err, BURIN_EFORMAT, "%s: %s is %s", file_name, burin_quote(key).text,
            burin_quote((struct burin_span){ begin, length }).text);
}

static enum burin_status read_member(
        struct burin_generation *generation,
        struct burin_json_scan *scan,
        struct burin_span key,
        struct burin_error *err)
{
    const struct {
        const char *name;
        double *number;
    } numbers[] = {
        { "temperature", &generation->temperature },
        { "top_k", &generation->top_k },
        { "top_p", &generation->top_p },
        { "min_p", &generation->min_p },
    };
    if (burin_json_peek(scan) == 'n')
        return burin_json_skip(scan, err);
    if (burin_span_is(key, "eos_token_id"))
        return read_stops(generation, scan, err);
    if (burin_span_is(key, "do_sample"))
        *(burin_json_peek(scan) == 'f' ? &generation->is_greedy : &generation->draws) =
                true;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (burin_span_is(key, numbers[i].name))
            return read_number(numbers[i].number, scan, key, err);
    return burin_json_skip(scan, err);
}

enum burin_status burin_generation_from_json(
        struct burin_generation *generation,
        char *text,
        size_t length,
        struct burin_error *err)
{
    struct burin_json_scan scan;
    struct burin_span key;
    bool more = true;

    *generation = burin_generation_unsaid;
    enum burin_status status = burin_json_scan_begin(&scan, file_name, text, length, err);
    if (!status)
        status = burin_json_enter(&scan, '{', err);
    while (!status && !(status = burin_json_member(&scan, &key, &more, err)) && more)
        status = read_member(generation, &scan, key, err);
    if (!status)
        status = burin_json_end(&scan, err);
    if (status)
        *generation = burin_generation_unsaid;
    return status;
}

static enum burin_status read_beside(
        struct burin_generation *generation,
        const struct burin_checkpoint *checkpoint,
        struct burin_error *err)
{
    struct burin_file file = { 0 };
    struct burin_arena arena = { 0 };
    char path[4096];

    const int length = snprintf(path, sizeof path, "%s/%s", checkpoint->folder, file_name);
    if (length < 0 || (size_t)length >= sizeof path)
        return BURIN_OK; /* no such file: the weights themselves have a longer path */
    enum burin_status status = burin_file_open(&file, path, err);
    if (status == BURIN_EMISSING)
        return BURIN_OK;
    if (!status && file.size > MAX_CONFIG)
        status = burin_fail(
                err, BURIN_ELIMIT, "%s has %llu bytes, the limit is %d", path,
                (unsigned long long)file.size, MAX_CONFIG);
    char *text = status ? NULL : burin_arena_take(&arena, (size_t)file.size + 1, 1, 1);
    if (!status && !text)
        status = burin_fail(err, BURIN_ENOMEM, "no memory to read %s", path);
    if (!status)
        status = burin_file_read(&file, 0, text, (size_t)file.size, err);
    if (!status)
        status = burin_generation_from_json(generation, text, (size_t)file.size, err);
    burin_file_close(&file);
    burin_arena_close(&arena);
    return status;
}

/* ---- GGUF ----------------------------------------------------------------------------- */

static void read_keys(struct burin_generation *generation, const struct burin_gguf *gguf)
{
    static const char *const ends[] = {
        "tokenizer.ggml.eos_token_id",
        "tokenizer.ggml.eot_token_id",
        "tokenizer.ggml.eom_token_id",
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        uint64_t id;
        if (burin_gguf_uint(gguf, ends[i], &id, NULL) == BURIN_OK)
            add_stop(generation, id);
    }
    burin_gguf_number(gguf, "general.sampling.temp", &generation->temperature, NULL);
    burin_gguf_number(gguf, "general.sampling.top_k", &generation->top_k, NULL);
    burin_gguf_number(gguf, "general.sampling.top_p", &generation->top_p, NULL);
    burin_gguf_number(gguf, "general.sampling.min_p", &generation->min_p, NULL);
}

enum burin_status burin_generation_read(
        struct burin_generation *generation,
        const struct burin_checkpoint *checkpoint,
        struct burin_error *err)
{
    *generation = burin_generation_unsaid;
    if (checkpoint->container != BURIN_GGUF)
        return read_beside(generation, checkpoint, err);
    read_keys(generation, &checkpoint->gguf);
    return BURIN_OK;
}
