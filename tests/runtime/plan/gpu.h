/* tests/runtime/plan/gpu.h -- Plans of the small vision model on a GPU, and their advice taken
 * as a user would take it. */
#ifndef BURIN_TEST_GPU_H
#define BURIN_TEST_GPU_H

#include "runtime/base/units.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/runs.h"
#include "tests/runtime/plan/vision_model.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline struct burin_plan_request gpu_request(int64_t bytes)
{
    return (struct burin_plan_request){
        .model = &vision_model,
        .n_threads = 1,
        .card = { .name = "card",
                  .total_bytes = bytes,
                  .available_bytes = bytes,
                  .sm = 120 },
        .limit = BURIN_LIMIT_BYTES,
        .limit_bytes = bytes,
    };
}

static inline struct burin_plan gpu_plan(const struct burin_plan_request *request)
{
    struct burin_plan plan;
    struct burin_error err = { 0 };
    if (burin_plan_make(&plan, request, &err))
        fail_msg("%s", err.message);
    return plan;
}

static inline const char *gpu_refusal(
        const struct burin_plan_request *request, enum burin_status expected)
{
    static struct burin_error err;
    struct burin_plan plan;
    assert_int_equal(burin_plan_make(&plan, request, &err), expected);
    return err.message;
}

/* A step that takes a picture as a whole: below 1,120 tokens of it there is no plan. */
static inline struct burin_family *family_with_spans(void)
{
    static struct burin_input inputs[4];
    static struct burin_program programs[4];
    static struct burin_family family;
    memcpy(inputs, vision_step_inputs, sizeof vision_step_inputs);
    inputs[3] = vision_step_inputs[0];
    inputs[3].name = "spans";
    memcpy(programs, vision_programs, sizeof programs);
    programs[0].n_inputs = 4;
    programs[0].inputs = inputs;
    family = vision_families[0];
    family.programs = programs;
    return &family;
}

/* A kernel of a program that some dtype of KV runs. */
static inline void enqueue_nothing(
        const struct burin_stream *stream, const struct burin_call *call)
{
    (void)stream;
    (void)call;
}

static inline int64_t owner_bytes(const struct burin_plan *plan, const char *owner)
{
    return burin_plan_owner_bytes(plan, owner);
}

static inline bool has_owner(const struct burin_plan *plan, const char *owner)
{
    for (int i = 0; i < plan->n_owners; i++)
        if (strcmp(plan->owners[i].name, owner) == 0)
            return true;
    return false;
}

static inline struct burin_graphs graphs_of(const char *text)
{
    struct burin_graphs graphs = { 0 };
    if (burin_graphs_parse(&graphs, text, NULL))
        fail_msg("%s", text);
    return graphs;
}

/* Take "--option value" from the begin of `text`; what is behind it. */
static inline const char *take_option(struct burin_plan_request *request, const char *text)
{
    char option[32], value[512];
    int used = 0;
    if (sscanf(text, " --%31s %511s%n", option, value, &used) != 2)
        return NULL;
    const size_t last = strlen(value) - 1;
    if (value[last] == ',' || value[last] == '.')
        value[last] = '\0';
    const int n = atoi(value);
    if (strcmp(option, "ctx-size") == 0)
        request->n_ctx = n;
    else if (strcmp(option, "batch-size") == 0)
        request->n_batch = n;
    else if (strcmp(option, "parallel") == 0)
        request->n_sequences = n;
    else if (strcmp(option, "threads") == 0)
        request->n_threads = n;
    else if (strcmp(option, "draft") == 0)
        request->n_draft = n;
    else if (strcmp(option, "video-frames") == 0)
        request->n_frames = n;
    else if (strcmp(option, "audio-clips") == 0)
        request->n_clips = n;
    else if (strcmp(option, "kv-tokens") == 0)
        request->kv_tokens = n; /* who gave --kv-bytes has both, and is refused */
    else if (strcmp(option, "kv-bytes") == 0) {
        if (burin_parse_bytes(value, strlen(value), &request->kv_bytes, NULL))
            fail_msg("%s", value);
    } else if (strcmp(option, "images") == 0) {
        request->images_given = true;
        request->n_images = n;
    } else if (strcmp(option, "graph-padding") == 0) {
        request->padding_given = true;
        request->graph_padding = n;
    } else if (strcmp(option, "kv-cache-dtype") == 0) {
        request->kv_dtype_given = true;
        request->kv_dtype = (enum burin_dtype)burin_dtype_by_name(value);
    } else if (strcmp(option, "graphs") == 0) {
        if (strncmp(text + used, " in place of ", 13) == 0)
            request->graphs.n = 0; /* no test names a program beside it */
        if (burin_graphs_parse(&request->graphs, value, NULL))
            fail_msg("%s", value);
    } else if (strcmp(option, "vram-fraction") == 0) {
        request->limit = BURIN_LIMIT_FRACTION;
        request->limit_fraction = atof(value);
    } else if (strncmp(option, "vram-", 5) == 0) {
        request->limit =
                strcmp(option, "vram-limit") == 0 ? BURIN_LIMIT_BYTES : BURIN_LIMIT_RESERVE;
        if (burin_parse_bytes(value, strlen(value), &request->limit_bytes, NULL))
            fail_msg("%s", value);
    } else
        fail_msg("%s", option);
    return text + used;
}

/* How many options the advice names, all of them taken; 0 where it names none. */
static inline int take_advice(
        struct burin_plan_request *request, const struct burin_plan *plan)
{
    const char *one = strstr(plan->advice, "Smallest change: --");
    const char *several = strstr(plan->advice, "Together these do:");
    if (one)
        return take_option(request, one + strlen("Smallest change:")) != NULL;
    int n = 0;
    if (several)
        for (const char *rest = several + strlen("Together these do:");
             rest && *rest == ' ';)
            if ((rest = take_option(request, rest)))
                n++;
    return n;
}

#endif
