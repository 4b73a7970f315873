#include "tests/runtime/plan/gpu.h"

#include <limits.h>

static struct burin_plan_request request;
static struct burin_plan plan;

static void plan_on(int64_t bytes)
{
    request = gpu_request(bytes);
}

/* ---- The account ------------------------------------------------------------------------ */

SPEC(every_byte_of_the_card_has_an_owner)
{
    plan_on(4 * GIB);
    request.n_sequences = 8;
    request.n_ctx = 10000;

    plan = gpu_plan(&request);

    assert_int_equal(owner_bytes(&plan, "context"), 555 * MIB);
    assert_int_equal(owner_bytes(&plan, "modules"), 64 * MIB);
    assert_int_equal(owner_bytes(&plan, "local memory"), 296 * MIB);
    assert_int_equal(owner_bytes(&plan, "weights"), 111 * MIB + 1); /* step and pictures */
    assert_int_equal(owner_bytes(&plan, "arena"), 1120 * SOFT_BYTES);
    assert_int_equal(
            owner_bytes(&plan, "inputs"), 1120 * 9 * 768 + (1121 * 4 + 63) / 64 * 64);
    assert_int_equal(owner_bytes(&plan, "encoder cache"), 1120 * 320 * 2);
    assert_int_equal(owner_bytes(&plan, "windows"), 8 * 512 * 1280);
    assert_int_equal(owner_bytes(&plan, "scans"), 8 * 300000);
    assert_int_equal(plan.programs[0].graphs.n, 5); /* 1 2 3 5 8 */
    assert_int_equal(plan.programs[2].graphs.n, 5);
    assert_int_equal(owner_bytes(&plan, "graphs"), (5 * 32 + 5 * 16) * 64 * 1024);
    assert_int_equal(owner_bytes(&plan, "kv"), (int64_t)plan.n_pages * 64 * 1280);
    int64_t sum = 0;
    for (int i = 0; i < plan.n_owners; i++)
        sum += plan.owners[i].bytes;
    assert_int_equal(plan.total_bytes, sum);
    assert_int_equal(plan.n_owners, 12);
}

SPEC(room_for_cublaslt_is_planned_where_it_may_multiply)
{
    plan_on(4 * GIB);
    request.n_sequences = 8;
    plan = gpu_plan(&request);
    const int64_t arena = owner_bytes(&plan, "arena");
    assert_int_equal(plan.params.value[BURIN_FAST_GEMM], 0);

    request.fast_gemm = true;
    plan = gpu_plan(&request);

    assert_int_equal(plan.params.value[BURIN_FAST_GEMM], 1);
    assert_int_equal(owner_bytes(&plan, "modules"), (64 + 300) * MIB);
    assert_int_equal(
            owner_bytes(&plan, "arena"), arena); /* this model has no scratch for it */
}

SPEC(KV_gets_what_is_left_in_whole_granules_and_not_a_page_more)
{
    for (int64_t bytes = 2 * GIB; bytes < 3 * GIB; bytes += 45678901) {
        plan_on(bytes);
        plan = gpu_plan(&request);
        assert_true(plan.fits);
        const int64_t left = plan.limit_bytes - plan.total_bytes;
        assert_true(left >= 0 && left < 2 * MIB + 64 * 1280);
    }
}

SPEC(a_measured_figure_takes_the_place_of_the_worst_known)
{
    plan_on(4 * GIB);
    request.costs = (struct burin_device_costs){ .context_bytes = 111 * MIB,
                                                 .modules_bytes = 5 * MIB,
                                                 .local_bytes = 22 * MIB,
                                                 .node_bytes = 10 * 1024 };
    request.granule = 4 * MIB;

    plan = gpu_plan(&request);

    static const char *const names[] = { "context", "modules", "local memory", "graphs",
                                         "rounding" };
    int n_measured = 0;
    for (int i = 0; i < plan.n_owners; i++)
        for (int k = 0; k < 5; k++)
            if (strcmp(plan.owners[i].name, names[k]) == 0)
                n_measured += plan.owners[i].kind == BURIN_MEASURED;
    assert_int_equal(n_measured, 5);
    assert_int_equal(owner_bytes(&plan, "local memory"), 22 * MIB);
}

SPEC(stacks_are_counted_by_the_multiprocessors_of_a_card_that_is_known)
{
    plan_on(4 * GIB);
    assert_int_equal(burin_card_parse(&request.card, "rtx5090", NULL), BURIN_OK);
    plan = gpu_plan(&request);
    assert_int_equal(owner_bytes(&plan, "local memory"), 255 * MIB);

    assert_int_equal(burin_card_parse(&request.card, "a100-80", NULL), BURIN_OK);
    request.family = &vision_families[3];
    plan = gpu_plan(&request);
    assert_int_equal(owner_bytes(&plan, "local memory"), 216 * MIB);
}

SPEC(where_host_and_card_share_their_memory_the_host_s_owners_count)
{
    plan_on(4 * GIB);
    request.card.unified = true;
    plan = gpu_plan(&request);

    assert_true(owner_bytes(&plan, "host") > 0 && owner_bytes(&plan, "tokenizer") > 0);
    assert_true(plan.fits && plan.total_bytes <= plan.limit_bytes);
    const int64_t copies = owner_bytes(&plan, "inputs") +
                           (int64_t)plan.n_outputs * plan.model->n_vocab * 4;
    assert_true(owner_bytes(&plan, "host") > 8 * (int64_t)MIB + copies);
    request.card.unified = false;
    plan = gpu_plan(&request);
    assert_false(has_owner(&plan, "host"));
}

/* ---- What is left to its default ---------------------------------------------------------- */

SPEC(the_default_number_of_sequences_leaves_three_quarters_of_the_room_to_KV)
{
    int seen = 0;
    for (int64_t bytes = GIB + GIB / 8; bytes < 2 * GIB; bytes += 5 * MIB) {
        plan_on(bytes);
        plan = gpu_plan(&request);
        const int64_t slots = owner_bytes(&plan, "windows") + owner_bytes(&plan, "scans");
        const int64_t room = slots + owner_bytes(&plan, "kv");
        assert_true((plan.n_sequences & (plan.n_sequences - 1)) == 0);
        assert_true(plan.n_sequences == 1 || slots <= room / 4 + 2 * MIB);
        seen |= plan.n_sequences;
        if (plan.n_sequences == BURIN_DEFAULT_SEQUENCES)
            continue;
        request.n_sequences = 2 * plan.n_sequences;
        plan = gpu_plan(&request);
        const int64_t twice = owner_bytes(&plan, "windows") + owner_bytes(&plan, "scans");
        assert_true(!plan.fits || twice > (twice + owner_bytes(&plan, "kv")) / 4 - 2 * MIB);
    }
    assert_int_equal(seen, 127); /* 1, 2, ..., 64 were all met */
}

SPEC(a_default_number_of_sequences_never_makes_a_plan_fail)
{
    plan_on(3 * GIB);
    request.n_ctx = 131072;
    request.n_sequences = 1;
    const int64_t least = gpu_plan(&request).total_bytes - owner_bytes(&plan, "kv");
    for (int64_t bytes = GIB; bytes < 2 * GIB; bytes += 17 * MIB) {
        plan_on(bytes);
        request.n_ctx = 131072;
        const bool by_default = gpu_plan(&request).fits;
        request.n_sequences = 1;
        assert_int_equal(by_default, gpu_plan(&request).fits);
    }
    assert_true(least > 0);
}

SPEC(a_context_that_nobody_asked_for_is_the_longest_that_fits_and_at_least_4096)
{
    plan_on(4 * GIB);
    assert_int_equal(gpu_plan(&request).n_ctx, 131072); /* the model's */

    int met = 0;
    for (int64_t bytes = GIB; bytes < GIB + GIB / 2; bytes += 3 * MIB) {
        plan_on(bytes);
        request.n_sequences = 2;
        plan = gpu_plan(&request);
        if (!plan.fits) {
            assert_int_equal(plan.n_ctx, 4096);
            continue;
        }
        assert_true(plan.n_ctx >= 4096 && plan.n_ctx <= 131072);
        assert_true(plan.kv_tokens >= plan.n_ctx);
        if (plan.n_ctx == 131072)
            continue;
        request.n_ctx = plan.n_ctx + 64;
        assert_false(gpu_plan(&request).fits);
        met++;
    }
    assert_true(met > 20);
}

SPEC(a_context_that_is_asked_for_binds)
{
    plan_on(GIB + GIB / 4);
    request.n_sequences = 2;
    const int n_ctx = gpu_plan(&request).n_ctx;
    request.n_ctx = n_ctx + 6400;

    plan = gpu_plan(&request);

    assert_false(plan.fits);
    assert_int_equal(plan.n_ctx, n_ctx + 6400);
    assert_in_range(
            plan.short_by_bytes, 100 * 64 * 1280 - 2 * MIB, 101 * 64 * 1280 + 2 * MIB);
}

SPEC(a_pool_that_is_asked_for_is_what_KV_gets)
{
    plan_on(4 * GIB);
    request.kv_tokens = 20000;
    request.n_sequences = 1;
    plan = gpu_plan(&request);
    assert_int_equal(plan.n_pages, 313);
    assert_int_equal(plan.n_ctx, 313 * 64);

    request.kv_tokens = 0;
    request.kv_bytes = GIB;
    plan = gpu_plan(&request);
    assert_int_equal(owner_bytes(&plan, "kv"), GIB / (64 * 1280) * (64 * 1280));
    request.kv_bytes = 4 * GIB;
    assert_false(gpu_plan(&request).fits);
}

SPEC(a_pool_has_the_context_of_one_sequence_and_a_page_for_each_of_the_others)
{
    plan_on(4 * GIB);
    request.kv_tokens = 20000;
    request.n_sequences = 64;
    assert_int_equal(gpu_plan(&request).n_ctx, (313 - 63) * 64);

    request.n_ctx = (313 - 63) * 64 + 1;
    assert_non_null(
            strstr(gpu_refusal(&request, BURIN_EUSAGE),
                   "room for 16000 tokens beside a page for each of 63 others, one request "
                   "may need "
                   "16001: start with --ctx-size 16000, or give --kv-tokens 20033"));
    request.kv_tokens = 20033;
    assert_int_equal(gpu_plan(&request).n_ctx, 16001);
    request.kv_tokens = 0;
    request.kv_bytes = 313 * 64 * 1280;
    assert_non_null(
            strstr(gpu_refusal(&request, BURIN_EUSAGE), "or give --kv-bytes 25722880"));
    request.kv_bytes = 25722880;
    assert_int_equal(gpu_plan(&request).n_ctx, 16001);
    request.kv_bytes = 0;

    request.n_ctx = 0;
    request.kv_tokens = 64;
    assert_non_null(strstr(
            gpu_refusal(&request, BURIN_EUSAGE), "a KV cache of 1 pages of 64 tokens, and "
                                                 "--parallel 64: each sequence has a page "
                                                 "at least, --kv-tokens 4096"));
    request.n_ctx = 1000; /* as many as both need */
    assert_non_null(strstr(gpu_refusal(&request, BURIN_EUSAGE), "--kv-tokens 5032"));
    request.kv_tokens = 5032;
    assert_int_equal(gpu_plan(&request).n_ctx, 1000);
    request.n_ctx = 0;
    request.kv_tokens = 64;
    /* Left to their default there are as many sequences as the pool has room for. */
    request.n_sequences = 0;
    assert_int_equal(gpu_plan(&request).n_sequences, 1);
    request.kv_tokens = 4096 + 5 * 64;
    plan = gpu_plan(&request);
    assert_int_equal(plan.n_sequences, 4);
    assert_int_equal(plan.n_ctx, (69 - 3) * 64);
}

/* ---- Layers that keep no pages ------------------------------------------------------------- */

SPEC(windows_and_states_alone_need_no_pages)
{
    struct burin_kv_layout kv[2];
    struct burin_family family = vision_families[0];
    memcpy(kv, vision_kv, sizeof kv);
    for (int i = 0; i < 2; i++) {
        kv[i].page_bytes = 0;
        kv[i].bytes_per_token = 0;
        kv[i].n_rows = 2;
        kv[i].rows++;
    }
    family.kv = kv;
    plan_on(4 * GIB);
    request.family = &family;

    plan = gpu_plan(&request);

    assert_true(plan.fits);
    assert_int_equal(plan.n_ctx, 131072);
    assert_false(has_owner(&plan, "kv"));
    assert_int_equal(owner_bytes(&plan, "windows"), (int64_t)plan.n_sequences * 512 * 1280);
    request.kv_tokens = 100;
    assert_non_null(strstr(gpu_refusal(&request, BURIN_EUSAGE), "keeps nothing in pages"));
    /* A model may keep nothing at all; what is kept in pages has bytes. */
    request.kv_tokens = 0;
    struct burin_program programs[4];
    memcpy(programs, vision_programs, sizeof programs);
    programs[0].inputs = vision_draft_inputs;
    programs[0].n_inputs = 1;
    kv[0].n_rows = 0;
    kv[0].bytes_per_sequence = 0;
    family.programs = programs;
    assert_true(gpu_plan(&request).fits);
    programs[0] = vision_programs[0];
    assert_non_null(strstr(gpu_refusal(&request, BURIN_EFORMAT), "KV pages of zero bytes"));
    kv[0].n_rows = 3;
    kv[0].rows--;
    assert_non_null(strstr(gpu_refusal(&request, BURIN_EFORMAT), "KV pages of zero bytes"));
}

/* ---- Programs ----------------------------------------------------------------------------- */

SPEC(drafts_bring_their_program_s_weights_keys_and_states)
{
    plan_on(4 * GIB);
    request.n_sequences = 4;
    request.n_ctx = 4096;
    const struct burin_plan without = gpu_plan(&request);
    request.n_draft = 3;

    plan = gpu_plan(&request);

    assert_int_equal(
            owner_bytes(&plan, "weights"), owner_bytes(&without, "weights") + 7 * MIB);
    assert_int_equal(plan.state.token, 1280 + 640);
    assert_int_equal(plan.state.page, 64 * (1280 + 640));
    assert_int_equal(owner_bytes(&plan, "windows"), owner_bytes(&without, "windows"));
    assert_int_equal(owner_bytes(&plan, "drafts"), 4 * 3 * (1280 + 300000));
    assert_int_equal(plan.n_outputs, 4 * 4);
    assert_int_equal(plan.params.value[BURIN_DRAFT], 3);
    assert_false(has_owner(&without, "drafts"));
}

SPEC(a_graph_of_n_sequences_has_n_times_draft_plus_1_tokens_and_as_many_outputs)
{
    plan_on(4 * GIB);
    request.n_sequences = 8;
    request.n_draft = 3;
    plan = gpu_plan(&request);
    struct burin_plan_run run;
    int n = 0;
    for (int i = 0; burin_plan_run_at(&plan, i, &run); i++) {
        if (!run.graph || run.program->extent == BURIN_SOFT)
            continue;
        assert_int_equal(run.extents[BURIN_SEQUENCES], run.n);
        assert_int_equal(run.extents[BURIN_TOKENS], 4 * run.n);
        assert_int_equal(
                run.extents[BURIN_OUTPUTS],
                burin_is_draft(run.program) ? run.n : 4 * run.n);
        n++;
    }
    assert_int_equal(n, 2 * 5);

    /* Also where the context is shorter than what is drafted. */
    request.n_ctx = 2;
    plan = gpu_plan(&request);
    assert_int_equal(plan.n_batch, 8 * 4);
    assert_int_equal(plan.largest_batch, 8 * 4);
    request.n_ctx = 0;

    request.n_batch = 31;
    assert_non_null(
            strstr(gpu_refusal(&request, BURIN_EUSAGE),
                   "--batch-size 31 is below --parallel 8 times --draft + 1"));
}

SPEC(without_pictures_and_frames_the_encoder_is_not_there)
{
    plan_on(4 * GIB);
    request.images_given = true;

    plan = gpu_plan(&request);

    assert_int_equal(owner_bytes(&plan, "weights"), 100 * MIB + 1);
    assert_false(has_owner(&plan, "encoder cache"));
    struct burin_plan_run run;
    for (int i = 0; burin_plan_run_at(&plan, i, &run); i++)
        assert_string_equal(run.program->name, "step");
}

SPEC(the_encoder_cache_holds_a_largest_item_a_picture_and_a_smallest_a_frame)
{
    plan_on(4 * GIB);
    request.images_given = true;
    request.n_images = 2;
    request.n_frames = 32;
    request.n_clips = 3;

    plan = gpu_plan(&request);

    assert_int_equal(plan.params.value[BURIN_MAX_SOFT], 2 * 1120 + 32 * 70 + 3 * 750);
    assert_int_equal(
            owner_bytes(&plan, "encoder cache"), (2 * 1120 + 32 * 70 + 3 * 750) * 640);
    /* A graph may hold several, an item is none the longer for it. */
    request.graphs = graphs_of("encode_image=70,140,4096");
    assert_int_equal(
            gpu_plan(&request).params.value[BURIN_MAX_SOFT], 2 * 1120 + 32 * 70 + 3 * 750);
    /* A largest graph below the largest item makes smaller pictures. */
    request.graphs = graphs_of("encode_image=70,280");
    assert_int_equal(
            gpu_plan(&request).params.value[BURIN_MAX_SOFT], 2 * 280 + 32 * 70 + 3 * 750);
}

SPEC(what_a_model_has_not_is_refused_by_the_option_s_name)
{
    struct burin_family family = vision_families[0];
    plan_on(4 * GIB);
    request.family = &family;
    family.n_programs = 1;
    plan = gpu_plan(&request); /* a picture by default is none then */
    assert_int_equal(plan.n_images, 0);

    request.images_given = true;
    request.n_images = 1;
    assert_non_null(
            strstr(gpu_refusal(&request, BURIN_EUSAGE),
                   "--images 1: vision-bf16 has no encoder for pictures"));
    request.n_images = 0;
    request.n_draft = 2;
    assert_non_null(strstr(gpu_refusal(&request, BURIN_EUSAGE), "no program that drafts"));
    request.n_draft = 0;
    request.n_clips = 1;
    assert_non_null(strstr(gpu_refusal(&request, BURIN_EUSAGE), "no encoder for sound"));
    request.n_clips = 0;
    request.graphs = graphs_of("steep=1,2");
    assert_non_null(
            strstr(gpu_refusal(&request, BURIN_EUSAGE),
                   "--graphs steep: the programs of vision-bf16 are step"));
}

SPEC(a_picture_whose_tokens_see_each_other_belongs_into_one_step)
{
    plan_on(4 * GIB);
    request.family = family_with_spans();
    request.n_batch = 1119;
    assert_non_null(strstr(
            gpu_refusal(&request, BURIN_EUSAGE), "a picture becomes up to 1120 tokens"));

    request.n_batch = 1120;
    assert_true(gpu_plan(&request).fits);
    request.n_batch = 280;
    request.graphs = graphs_of("encode_image=70,280");
    assert_true(gpu_plan(&request).fits);
}

/* Whatever the number of sequences, one of them has all of the picture. */
SPEC(a_picture_belongs_into_one_context_however_many_there_are)
{
    for (int n = 0; n <= 64; n = n ? 8 * n : 1) {
        plan_on(4 * GIB);
        request.family = family_with_spans();
        request.n_sequences = n;
        request.n_ctx = 1119;
        assert_non_null(
                strstr(gpu_refusal(&request, BURIN_EUSAGE),
                       "and a sequence has 1119 (--ctx-size)"));

        request.n_ctx = 1120;
        assert_true(gpu_plan(&request).fits);
        request.n_ctx = 280;
        request.graphs = graphs_of("encode_image=70,280");
        assert_true(gpu_plan(&request).fits);
    }
    /* Where the model itself has fewer tokens, so has the picture. */
    struct burin_model model = vision_model;
    model.n_ctx = 1000;
    plan_on(4 * GIB);
    request.family = family_with_spans();
    request.model = &model;
    plan = gpu_plan(&request);
    assert_int_equal(plan.params.value[BURIN_MAX_SOFT], 1000);
}

/* Nobody asked for 64 sequences: what is refused is refused for one, too. */
SPEC(a_refusal_names_what_was_asked_for_and_not_the_default_number_of_sequences)
{
    static const struct {
        int n_batch;
        int64_t kv_tokens, kv_bytes;
        const char *said;
    } cases[] = {
        { 8, 0, 0, "and a step has 8 (--batch-size)" },
        { 0, 64, 0, "and a sequence has 64 (--kv-tokens)" },
        { 0, 0, 3 * 64 * 1280, "and a sequence has 192 (--kv-bytes)" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        plan_on(4 * GIB);
        request.family = family_with_spans();
        request.n_batch = cases[i].n_batch;
        request.kv_tokens = cases[i].kv_tokens;
        request.kv_bytes = cases[i].kv_bytes;

        const char *refusal = gpu_refusal(&request, BURIN_EUSAGE);

        assert_non_null(strstr(refusal, cases[i].said));
        assert_non_null(strstr(refusal, ", --images 0 plans for none"));
        request.images_given = true; /* as it says */
        assert_true(gpu_plan(&request).fits);
        request.n_images = 1;
        request.largest_picture = 1000; /* is on its way */
        assert_null(strstr(gpu_refusal(&request, BURIN_EUSAGE), "--images"));
    }
}

/* ---- What is told --------------------------------------------------------------------------- */

SPEC(assume_fixed_stands_for_all_but_graphs_states_and_KV)
{
    plan_on(4 * GIB);
    request.n_sequences = 2;
    request.fixed_given = true;
    request.fixed_bytes = 3 * GIB + 12345;

    plan = gpu_plan(&request);

    static const char *const gone[] = { "context", "modules", "local memory",  "weights",
                                        "arena",   "inputs",  "encoder cache", "rounding" };
    for (int i = 0; i < 8; i++)
        assert_false(has_owner(&plan, gone[i]));
    assert_int_equal(owner_bytes(&plan, "fixed"), 3 * GIB + 12345);
    assert_true(plan.owners[0].told);
    struct burin_plan_request untold = request;
    untold.fixed_given = false;
    const struct burin_plan derived = gpu_plan(&untold);
    int64_t sum = 0;
    for (int i = 0; i < derived.n_owners; i++)
        for (int k = 0; k < 7; k++)
            if (strcmp(derived.owners[i].name, gone[k]) == 0)
                sum += derived.owners[i].bytes;
    assert_in_range(
            plan.owners[0].derived_bytes, sum, sum + 8 * MIB); /* and its rounding */
    assert_int_equal(owner_bytes(&plan, "graphs"), (2 * 32 + 5 * 16) * 64 * 1024);
    assert_int_equal(owner_bytes(&plan, "windows"), 2 * 512 * 1280);
    const int64_t room = GIB - 12345 - owner_bytes(&plan, "graphs") -
                         owner_bytes(&plan, "windows") - owner_bytes(&plan, "scans");
    assert_int_equal(plan.n_pages, room / (64 * 1280));
}

SPEC(assume_graphs_stands_for_their_total_and_is_not_nothing)
{
    plan_on(4 * GIB);
    request.graphs_given = true;
    request.graphs_bytes = 7777777;
    plan = gpu_plan(&request);
    assert_int_equal(owner_bytes(&plan, "graphs"), 7777777);
    for (int i = 0; i < plan.n_owners; i++)
        if (plan.owners[i].told)
            assert_int_equal(
                    plan.owners[i].derived_bytes,
                    (plan.programs[0].graphs.n * 32 + 5 * 16) * 64 * 1024);

    request.graphs_bytes = 0;
    assert_non_null(strstr(gpu_refusal(&request, BURIN_EUSAGE), "--assume graphs=0"));
    request.graphs.none = true;
    plan = gpu_plan(&request);
    assert_int_equal(owner_bytes(&plan, "graphs"), 0);
}
