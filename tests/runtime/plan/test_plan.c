#include "runtime/plan/plan.h"
#include "runtime/plan/report.h"
#include "tests/runtime/plan/gpu.h"

#include <stdio.h>
#include <string.h>

static struct burin_plan_request request_on(int64_t bytes)
{
    struct burin_plan_request request = { .model = &tiny_model, .n_threads = 2 };
    request.card = (struct burin_card){ .name = "card",
                                        .total_bytes = bytes,
                                        .available_bytes = bytes };
    request.limit = BURIN_LIMIT_BYTES;
    request.limit_bytes = bytes;
    return request;
}

static struct burin_plan plan_of(const struct burin_plan_request *request)
{
    struct burin_plan plan;
    struct burin_error err = { 0 };
    if (burin_plan_make(&plan, request, &err))
        fail_msg("%s", err.message);
    return plan;
}

static int64_t bytes_of(const struct burin_plan *plan, const char *owner)
{
    return burin_plan_owner_bytes(plan, owner);
}

static int64_t fixed_of(const struct burin_plan *plan)
{
    return plan->total_bytes - bytes_of(plan, "kv");
}

static const char *refusal_of(const struct burin_plan_request *request)
{
    static struct burin_error err;
    struct burin_plan plan;
    assert_int_not_equal(burin_plan_make(&plan, request, &err), BURIN_OK);
    return err.message;
}

SPEC(by_default_one_sequence_of_at_most_8192_tokens_in_steps_of_2048)
{
    const struct burin_plan_request request = request_on(64 * MIB);

    const struct burin_plan plan = plan_of(&request);

    assert_int_equal(plan.n_ctx, 8192);
    assert_int_equal(plan.n_sequences, 1);
    assert_int_equal(plan.n_batch, 2048);
    assert_int_equal(plan.n_outputs, 1);
    assert_int_equal(plan.n_pages, 128);
    assert_int_equal(plan.kv->dtype, BURIN_BF16);
    assert_true(plan.fits);
    assert_string_equal(plan.advice, "");
}

SPEC(every_byte_has_an_owner_and_they_add_up)
{
    struct burin_plan_request request = request_on(64 * MIB);
    request.n_ctx = 100;
    request.n_sequences = 3;
    request.n_batch = 10;
    request.weights_at_hand = true;
    request.tokenizer_bytes = 777;

    const struct burin_plan plan = plan_of(&request);

    assert_int_equal(bytes_of(&plan, "weights"), 50048);
    assert_int_equal(bytes_of(&plan, "arena"), 10 * 192 + 3 * 4096);
    assert_int_equal(bytes_of(&plan, "inputs"), 64 + 64 + 64); /* ids, 3 x 2 pages, rows */
    assert_int_equal(bytes_of(&plan, "kv"), 6 * 64 * 80);      /* 2 pages each */
    assert_int_equal(bytes_of(&plan, "tokenizer"), 777);
    assert_int_equal(bytes_of(&plan, "threads"), BURIN_THREAD_BYTES);
    int64_t sum = 0;
    for (int i = 0; i < plan.n_owners; i++)
        sum += plan.owners[i].bytes;
    assert_int_equal(plan.total_bytes, sum);
}

SPEC(what_a_granule_adds_is_a_row_of_its_own)
{
    struct burin_plan_request request = request_on(64 * MIB);
    const struct burin_plan exact = plan_of(&request);
    request.granule = 4096;

    const struct burin_plan plan = plan_of(&request);

    static const char *const names[] = { "weights", "arena", "inputs", "kv", "tokenizer" };
    int64_t over = 0;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(bytes_of(&plan, names[i]), bytes_of(&exact, names[i]));
        over += (4096 - bytes_of(&plan, names[i]) % 4096) % 4096;
    }
    assert_int_equal(bytes_of(&plan, "rounding"), over);
}

static enum burin_kind tokenizer_kind(const struct burin_plan *plan)
{
    for (int i = 0; i < plan->n_owners; i++)
        if (strcmp(plan->owners[i].name, "tokenizer") == 0)
            return plan->owners[i].kind;
    fail_msg("no row is the tokenizer's");
    return BURIN_ASSUMED;
}

SPEC(the_tokenizer_is_derived_from_weights_at_hand_and_else_assumed)
{
    struct burin_plan_request request = request_on(64 * MIB);
    struct burin_plan plan = plan_of(&request);
    assert_int_equal(tokenizer_kind(&plan), BURIN_ASSUMED);

    request.weights_at_hand = true;
    request.tokenizer_bytes = 5;
    plan = plan_of(&request);
    assert_int_equal(tokenizer_kind(&plan), BURIN_DERIVED);
}

SPEC(weights_without_a_tokenizer_need_no_bytes_for_it_and_none_to_round_it)
{
    struct burin_plan_request request = request_on(64 * MIB);
    request.granule = 4096;
    const struct burin_plan assumed = plan_of(&request);
    request.weights_at_hand = true;

    const struct burin_plan plan = plan_of(&request);

    assert_int_equal(bytes_of(&plan, "tokenizer"), 0);
    assert_int_equal(tokenizer_kind(&plan), BURIN_DERIVED);
    assert_int_equal(
            bytes_of(&plan, "rounding"),
            bytes_of(&assumed, "rounding") -
                    (4096 - bytes_of(&assumed, "tokenizer") % 4096) % 4096);
}

SPEC(it_fits_from_the_last_byte_on_and_says_what_is_missing_below)
{
    struct burin_plan_request request = request_on(64 * MIB);
    const int64_t total = plan_of(&request).total_bytes;

    request.limit_bytes = total;
    assert_true(plan_of(&request).fits);

    request.limit_bytes = total - 7;
    const struct burin_plan plan = plan_of(&request);
    assert_false(plan.fits);
    assert_int_equal(plan.short_by_bytes, 7);
}

SPEC(a_refusal_names_the_numbers_the_largest_owner_and_the_change)
{
    struct burin_plan_request request = request_on(64 * MIB);
    request.limit_bytes = plan_of(&request).total_bytes - 1;
    const struct burin_plan plan = plan_of(&request);
    struct burin_error err;

    assert_int_equal(burin_plan_check(&plan, &err), BURIN_ENOMEM);

    assert_non_null(strstr(err.message, "short by 1 B (1 bytes)"));
    assert_non_null(strstr(err.message, "largest part is host"));
    assert_non_null(strstr(err.message, "--ctx-size 8128 in place of 8192"));
}

SPEC(the_advice_mends_it)
{
    struct burin_plan_request request = request_on(64 * MIB);
    request.n_sequences = 5;
    request.n_outputs = 1;
    const struct burin_plan whole = plan_of(&request);
    int mended = 0;
    for (int64_t limit = fixed_of(&whole) - 2000000; limit < whole.total_bytes;
         limit += 9973) {
        request.limit_bytes = limit;
        const struct burin_plan plan = plan_of(&request);
        struct burin_plan_request other = request;
        if (take_advice(&other, &plan) != 1)
            continue;
        if (!plan_of(&other).fits)
            fail_msg("limit %lld: %s", (long long)limit, plan.advice);
        mended++;
    }
    assert_in_range(mended, 100, 1000);
}

/* A context of less than a page, one thread of many: whatever is left to give up is tried
 * before a smaller recipe is named. */
SPEC(as_long_as_anything_fits_there_is_advice_that_mends_it)
{
    struct burin_plan_request request = request_on(512 * MIB);
    request.n_threads = 64;
    request.n_sequences = 3;
    const int64_t whole = plan_of(&request).total_bytes;
    struct burin_plan_request least = request;
    least.n_threads = 1;
    least.n_sequences = 1;
    least.n_ctx = 1;
    int threads = 0, several = 0, mended = 0;
    for (int64_t limit = plan_of(&least).total_bytes; limit < whole; limit += 76543) {
        request.limit_bytes = limit;
        const struct burin_plan plan = plan_of(&request);
        struct burin_plan_request other = request;
        const int taken = take_advice(&other, &plan);
        if (!taken || !plan_of(&other).fits)
            fail_msg("limit %lld: %s", (long long)limit, plan.advice);
        threads += strstr(plan.advice, "Smallest change: --threads") != NULL;
        several += taken > 1;
        mended++;
    }
    assert_true(mended > 500 && threads > 100 && several > 10);

    least.limit_bytes = plan_of(&least).total_bytes - 1;
    request.limit_bytes = least.limit_bytes;
    request.card.available_bytes = least.limit_bytes; /* there is no more to be had */
    assert_non_null(strstr(plan_of(&request).advice, "No option mends it"));
}

SPEC(a_context_of_less_than_a_page_is_advised_where_nothing_else_fits)
{
    struct burin_plan_request request = request_on(64 * MIB);
    request.n_threads = 1;
    request.n_batch = 1;
    struct burin_plan_request least = request;
    least.n_ctx = 1;
    request.n_ctx = 65;
    request.limit_bytes = plan_of(&least).total_bytes;

    assert_string_equal(
            plan_of(&request).advice, "Smallest change: --ctx-size 64 in place of 65.");
}

SPEC(wider_keys_than_the_default_that_do_not_fit_are_told_of_the_default)
{
    struct burin_plan_request request = request_on(64 * MIB);
    request.kv_dtype_given = true;
    request.kv_dtype = BURIN_F32;
    const struct burin_plan whole = plan_of(&request);
    request.limit_bytes = fixed_of(&whole) + bytes_of(&whole, "kv") / 2;

    const struct burin_plan plan = plan_of(&request);

    assert_string_equal(
            plan.advice, "Smallest change: --kv-cache-dtype bf16 in place of f32.");
}

SPEC(a_limit_above_what_is_available_is_no_limit)
{
    struct burin_plan_request request = request_on(64 * MIB);
    request.card.available_bytes = 5 * MIB;

    assert_int_equal(plan_of(&request).limit_bytes, 5 * MIB);
}

SPEC(where_the_weights_alone_are_too_large_a_smaller_recipe_is_named)
{
    struct burin_plan_request request = request_on(64 * MIB);
    const struct burin_plan plan = plan_of(&request);
    request.n_ctx = 64;
    request.n_batch = 32;
    request.n_threads = 1;
    request.limit_bytes = plan_of(&request).total_bytes - 43000;
    request.card.available_bytes = request.limit_bytes;

    const struct burin_plan refused = plan_of(&request);

    assert_true(plan.fits);
    assert_non_null(strstr(
            refused.advice, "bits an element (gen --quant), the weights have 5.00; or "
                            "a smaller variant. That is with --ctx-size 1 "
                            "--batch-size 1."));
    assert_int_equal(refused.longest_context, 0);
}

SPEC(the_longest_context_fits_and_a_page_more_does_not)
{
    struct burin_plan_request request = request_on(64 * MIB);
    request.limit_bytes = plan_of(&request).total_bytes + 100 * 80 * 64 / 2;

    const struct burin_plan plan = plan_of(&request);

    request.n_ctx = plan.longest_context;
    assert_true(plan_of(&request).fits);
    request.n_ctx = plan.longest_context + 64;
    assert_false(plan_of(&request).fits);
    assert_in_range(plan.longest_context, 8192, 16383);
}

/* Each sequence more is a row of logits more in a step: 4096 bytes of arena here. */
SPEC(as_many_sequences_as_the_plan_names_fit_when_asked_for_and_one_more_does_not)
{
    struct burin_plan_request request = request_on(64 * MIB);
    request.n_ctx = 100;
    const int64_t one = plan_of(&request).total_bytes;
    for (int64_t limit = one; limit < one + 20 * MIB; limit += 1234567) {
        request.limit_bytes = limit;
        const int most = plan_of(&request).most_sequences;

        struct burin_plan_request other = request;
        other.n_sequences = most;
        assert_true(plan_of(&other).fits);
        other.n_sequences = most + 1;
        assert_false(plan_of(&other).fits);
    }
}

/* A small context makes a small step: a longer one brings the whole batch back. */
SPEC(the_longest_context_counts_the_step_that_comes_with_it)
{
    struct burin_plan_request request = request_on(64 * MIB);
    request.n_ctx = 64;
    for (int64_t limit = plan_of(&request).total_bytes; limit < 12 * MIB; limit += 54321) {
        request.limit_bytes = limit;
        struct burin_plan_request other = request;
        other.n_ctx = plan_of(&request).longest_context;
        assert_true(plan_of(&other).fits);
    }
}

SPEC(the_pool_bounds_the_longest_context)
{
    struct burin_plan_request request = request_on(64 * MIB);
    request.kv_tokens = 1000;
    assert_int_equal(plan_of(&request).longest_context, 1024);
}

SPEC(kv_tokens_set_the_pool_and_a_context_that_it_cannot_hold_is_refused)
{
    struct burin_plan_request request = request_on(64 * MIB);
    request.kv_tokens = 1000;

    const struct burin_plan plan = plan_of(&request);
    assert_int_equal(plan.n_pages, 16);
    assert_int_equal(plan.n_ctx, 1024);

    request.n_ctx = 2000;
    assert_non_null(
            strstr(refusal_of(&request),
                   "room for 1024 tokens, one request may need 2000: start with "
                   "--ctx-size 1024"));
}

SPEC(kv_bytes_are_whole_pages)
{
    struct burin_plan_request request = request_on(64 * MIB);
    request.kv_bytes = 3 * 64 * 80 + 1;
    assert_int_equal(plan_of(&request).n_pages, 3);

    request.kv_bytes = 64 * 80 - 1;
    assert_non_null(strstr(refusal_of(&request), "--kv-bytes 5119"));
}

SPEC(what_makes_no_sense_is_refused_with_the_option_and_both_numbers)
{
    struct burin_plan_request request = request_on(64 * MIB);
    request.n_ctx = 16385;
    assert_non_null(strstr(refusal_of(&request), "--ctx-size 16385 is beyond the 16384"));

    request = request_on(64 * MIB);
    request.n_batch = 4;
    request.n_sequences = 8;
    assert_non_null(strstr(refusal_of(&request), "--batch-size 4 is below --parallel 8"));

    request = request_on(64 * MIB);
    request.kv_dtype_given = true;
    request.kv_dtype = BURIN_F16;
    assert_non_null(
            strstr(refusal_of(&request), "--kv-cache-dtype f16: the portable family"));

    request = request_on(64 * MIB);
    request.limit = BURIN_LIMIT_FRACTION;
    request.limit_fraction = 1.5;
    assert_string_equal(
            refusal_of(&request), "--vram-fraction 1.5 is not above 0 and at most 1");
}

SPEC(a_program_without_costs_stops_the_plan)
{
    struct burin_program program = tiny_programs[0];
    struct burin_family family = tiny_families[0];
    family.programs = &program;
    program.n_costs = 0;
    struct burin_plan_request request = request_on(64 * MIB);
    request.family = &family;

    assert_non_null(strstr(refusal_of(&request), "no row in chunk_costs"));
}

SPEC(an_encoder_is_planned_where_pictures_are_asked_for)
{
    static const struct burin_chunk_cost costs[] = {
        { "carried", { .extent = BURIN_SOFT }, 1 },
        { "body", { .slope = CONSTANT(1 << 20), .extent = BURIN_SOFT }, 1 },
    };
    const struct burin_program programs[] = { tiny_programs[0],
                                              { .name = "encode_image",
                                                .extent = BURIN_SOFT,
                                                .smallest_item = 3,
                                                .largest_item = 11,
                                                .n_carried = 1,
                                                .n_costs = 2,
                                                .costs = costs,
                                                .graph = { .kernel_nodes = 3 } } };
    struct burin_family family = tiny_families[0];
    family.n_programs = 2;
    family.programs = programs;
    struct burin_plan_request request = request_on(64 * MIB);
    request.family = &family;
    struct burin_plan plan = plan_of(&request);
    char text[8192] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    burin_plan_report(&plan, out);
    fclose(out);
    assert_non_null(
            strstr(text, "program step: arena 384 KiB throughout + the larger of body "));
    assert_non_null(strstr(
            text, "program encode_image: not in this plan (--images, --video-frames)"));

    request.images_given = true;
    request.n_images = 1;
    plan = plan_of(&request);
    assert_int_equal(bytes_of(&plan, "arena"), 11 * MIB);
}

SPEC(a_model_without_a_context_stops_the_plan)
{
    struct burin_model model = tiny_model;
    model.n_ctx = 0;
    struct burin_plan_request request = request_on(64 * MIB);
    request.model = &model;

    assert_non_null(strstr(refusal_of(&request), "has a context of 0 tokens (n_ctx)"));
}

SPEC(a_graph_without_nodes_stops_the_plan_of_a_gpu)
{
    struct burin_program program = tiny_programs[0];
    program.graph = (struct burin_graph_cost){ 0 };
    struct burin_family family = tiny_families[0];
    family.programs = &program;
    struct burin_plan_request request = request_on(64 * MIB);
    request.family = &family;
    family.sm = 120;
    request.card.sm = 120;

    assert_non_null(strstr(refusal_of(&request), "no graph budget"));
}

SPEC(an_absurd_request_does_not_overflow_into_fitting)
{
    struct burin_plan_request request = request_on(INT64_MAX - 1);
    request.n_ctx = 16384;
    request.n_sequences = 1 << 16;
    request.n_batch = 1 << 20;
    request.n_outputs = 1 << 20;
    assert_true(plan_of(&request).fits);

    struct burin_family family = tiny_families[0];
    struct burin_kv_layout kv = tiny_kv[0];
    kv.page_bytes = (size_t)INT64_MAX / 2;
    family.kv = &kv;
    family.n_kv = 1;
    request.family = &family;
    assert_false(plan_of(&request).fits);
}

SPEC(the_report_says_who_owns_what_and_the_json_has_every_key)
{
    struct burin_plan_request request = request_on(64 * MIB);
    struct burin_plan plan = plan_of(&request);
    char text[8192] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    burin_plan_report(&plan, out);
    fclose(out);
    assert_non_null(strstr(text, "It fits under what is assumed, with "));
    assert_non_null(strstr(text, "weights         48.9 KiB            50,048  derived"));

    out = fmemopen(text, sizeof text, "w");
    burin_plan_json(&plan, out);
    fclose(out);
    static const char *const keys[] = {
        "\"model\": \"tiny\"",
        "\"variant\"",
        "\"quant\": \"q4_1\"",
        "\"family\"",
        "\"card\"",
        "\"total_bytes\"",
        "\"sm\": null",
        "\"elements\": 80000",
        "\"weights_bytes\": 50048",
        "\"programs\"",
        "\"program\": \"step\"",
        "\"n\": 2048",
        "\"input_bytes\"",
        "\"arena_bytes\"",
        "\"kernel_nodes\": 17",
        "\"copy_nodes\"",
        "\"driver_bytes\"",
        "\"kv\"",
        "\"bytes_per_token\": 80",
        "\"bytes_per_sequence\"",
        "\"bytes\"",
        "\"tokens\": 8192",
        "\"owners\"",
        "\"owner\": \"arena\"",
        "\"kind\": \"derived\"",
        "\"fits\": true",
        "\"short_by_bytes\": 0",
        "\"advice\": \"\"",
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strstr(text, keys[i]))
            fail_msg("%s is not in\n%s", keys[i], text);
}
