/* What is said of a plan that does not fit, and of one that does: taken as a user would take it. */
#include "tests/runtime/plan/gpu.h"

#include <limits.h>

static struct burin_plan_request request;
static struct burin_plan plan;

static void plan_on(int64_t bytes)
{
    request = gpu_request(bytes);
}

/* ---- Refusals -------------------------------------------------------------------------------- */

SPEC(a_refusal_says_what_is_missing_who_is_largest_and_where_the_largest_run_has_its_bytes)
{
    plan_on(GIB + 90 * MIB);
    plan = gpu_plan(&request);
    struct burin_error err;

    assert_int_equal(burin_plan_check(&plan, &err), BURIN_ENOMEM);

    assert_true(plan.short_by_bytes > 0);
    assert_non_null(strstr(err.message, "short by"));
    assert_non_null(strstr(err.message, "The largest part is context, 555 MiB"));
    assert_non_null(strstr(
            err.message, "The largest run is encode_image, n = 1120, its budget of soft "
                         "tokens: buffer ff (10080, 3072) bf16, "
                         "61931520 bytes; input pixels (10080, 768) u8, 7741440 bytes"));
    assert_non_null(strstr(err.message, "Smallest change: "));
}

/* Everything between nothing at all and enough: what is advised is planned, and fits. */
SPEC(the_advice_mends_it_wherever_there_is_any)
{
    int one = 0, several = 0, limits = 0, options = 0;
    for (int i = 0; i < 4; i++)
        for (int64_t bytes = 900 * MIB; bytes < 2 * GIB; bytes += 9 * MIB + 77777) {
            plan_on(bytes);
            request.card.total_bytes = 8 * GIB; /* of which so much may be used */
            request.card.available_bytes = 8 * GIB;
            request.n_ctx = i == 1 ? 131072 : 0;
            request.n_sequences = i == 2 ? 300 : 0;
            request.n_draft = i == 3 ? 4 : 0;
            request.n_frames = i == 3 ? 500 : 0;
            plan = gpu_plan(&request);
            if (plan.fits)
                continue;
            const bool limit = strstr(plan.advice, "--vram-limit");
            const int taken = take_advice(&request, &plan);
            if (!taken || !gpu_plan(&request).fits)
                fail_msg("%lld bytes: %s", (long long)bytes, plan.advice);
            one += !limit && taken == 1;
            several += taken > 1;
            limits += limit;
            options += strstr(plan.advice, "--graph") != NULL;
        }
    assert_true(one > 50 && several > 10 && limits > 10 && options > 0);
}

SPEC(where_no_option_helps_a_smaller_recipe_or_variant_is_named)
{
    plan_on(980 * MIB);
    plan = gpu_plan(&request);
    assert_non_null(strstr(plan.advice, "No option mends it"));
}

/* What is left to others is the user's to say: the least that is given up, in round numbers. */
SPEC(a_limit_that_alone_is_in_the_way_is_advised_and_no_more_of_it_than_need_be)
{
    static const struct {
        enum burin_limit kind;
        int64_t bytes;
        double fraction;
        const char *advice;
    } cases[] = {
        { BURIN_LIMIT_RESERVE_DEFAULT, 0, 0, "Smallest change: --vram-reserve " },
        { BURIN_LIMIT_RESERVE, 3 * GIB / 2, 0, "Smallest change: --vram-reserve " },
        { BURIN_LIMIT_BYTES, 700 * MIB, 0, "Smallest change: --vram-limit " },
        { BURIN_LIMIT_FRACTION, 0, 0.4, "Smallest change: --vram-fraction 0." },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int sparse = 0; sparse < 2; sparse++) {
            plan_on(sparse ? 1950 * MIB : 7 * GIB / 4);
            request.n_sequences = 1;
            request.limit = cases[i].kind;
            request.limit_bytes = cases[i].bytes;
            request.limit_fraction = cases[i].fraction;
            if (sparse) /* others have the rest of it */
                request.card.available_bytes = 1800 * MIB;
            plan = gpu_plan(&request);
            if (strncmp(plan.advice, cases[i].advice, strlen(cases[i].advice)) != 0)
                fail_msg("%s", plan.advice);

            assert_int_equal(take_advice(&request, &plan), 1);

            assert_true(gpu_plan(&request).fits);
            assert_int_equal(
                    burin_card_check_cap(
                            &request.card, request.limit, request.limit_bytes,
                            request.limit_fraction, NULL),
                    BURIN_OK);
            const bool reserve = request.limit == BURIN_LIMIT_RESERVE;
            request.limit_bytes += reserve ? 64 * MIB : -64 * MIB;
            request.limit_fraction -= 0.01;
            assert_false(gpu_plan(&request).fits);
        }
}

/* Who looks at a card that others use must not be sent away from the model. */
SPEC(where_others_hold_what_would_do_it_is_said_and_no_smaller_variant)
{
    static const char until[] = "No option mends it until others give back what they hold: "
                                "card has 900 MiB free of ";
    plan_on(4 * GIB);
    request.card.available_bytes = 900 * MIB;
    request.limit = BURIN_LIMIT_RESERVE_DEFAULT;
    plan = gpu_plan(&request);
    assert_memory_equal(plan.advice, until, strlen(until));
    assert_non_null(strstr(plan.advice, "free of 4.00 GiB, all of it would do."));
    assert_null(strstr(plan.advice, "variant"));

    /* With all of it, too, something must be given up. */
    request.n_sequences = 2000;
    request.n_ctx = 131072;
    plan = gpu_plan(&request);
    assert_memory_equal(plan.advice, until, strlen(until));
    if (!strstr(plan.advice, "4.00 GiB. With all of it: Smallest change: --"))
        fail_msg("%s", plan.advice);
    request.card.available_bytes = 4 * GIB;
    take_advice(&request, &plan);
    assert_true(gpu_plan(&request).fits);

    /* Options mend it as it is. */
    plan_on(4 * GIB);
    request.n_sequences = 2;
    request.n_ctx = 131072;
    request.card.available_bytes = 5 * GIB / 4;
    plan = gpu_plan(&request);
    assert_memory_equal(plan.advice, "Smallest change: --", 19);
    assert_non_null(strstr(
            plan.advice,
            ". Or others give back what they hold: card has 1.25 GiB free of 4.00 GiB, all "
            "of it would do."));
    assert_int_equal(take_advice(&request, &plan), 1);
    assert_true(gpu_plan(&request).fits);

    /* A card that is too small as a whole. */
    plan_on(980 * MIB);
    request.card.available_bytes = 900 * MIB;
    assert_null(strstr(gpu_plan(&request).advice, "others"));
}

SPEC(with_all_of_the_card_the_other_options_do_what_they_can)
{
    int several = 0, none = 0;
    for (int64_t bytes = 800 * MIB; bytes < 3 * GIB / 2; bytes += 17 * MIB + 777) {
        plan_on(bytes);
        request.limit = BURIN_LIMIT_RESERVE_DEFAULT;
        plan = gpu_plan(&request);
        struct burin_plan_request all = request;
        all.limit = BURIN_LIMIT_RESERVE;
        all.limit_bytes = 0;
        const struct burin_plan whole = gpu_plan(&all);
        if (take_advice(&request, &plan) == 0) {
            assert_non_null(strstr(plan.advice, "No option mends it"));
            assert_non_null(strstr(whole.advice, "No option mends it"));
            none++;
            continue;
        }
        assert_true(gpu_plan(&request).fits);
        several += strstr(plan.advice, "Together these do: --vram-reserve 0 -") != NULL;
    }
    assert_true(several > 3 && none > 3);
}

SPEC(what_else_would_fit_fits_beside_what_is_planned_and_more_does_not)
{
    for (int64_t bytes = GIB + GIB / 4; bytes < 3 * GIB; bytes += 123456789) {
        plan_on(bytes);
        plan = gpu_plan(&request);
        struct burin_plan_request held = request;
        held.n_sequences = plan.n_sequences;
        held.n_ctx = plan.n_ctx;
        struct burin_plan_request more = held;
        more.n_sequences = plan.most_sequences;
        assert_true(gpu_plan(&more).fits);
        more.n_sequences++;
        assert_true(plan.most_sequences == 2048 || !gpu_plan(&more).fits);
        more = held;
        more.n_batch = plan.largest_batch;
        assert_true(gpu_plan(&more).fits);
        more.n_batch++;
        assert_true(
                plan.largest_batch == plan.n_ctx * plan.n_sequences ||
                plan.largest_batch == BURIN_MAX_BATCH || !gpu_plan(&more).fits);
        more = held;
        more.n_ctx = plan.longest_context;
        assert_true(gpu_plan(&more).fits);
    }
}

SPEC(what_is_planned_is_the_least_that_is_said_to_fit)
{
    static const char *const graphs[] = { "", "step=64", "step=1,3" };
    for (int i = 0; i < 3; i++)
        for (int64_t bytes = GIB; bytes < 6 * GIB; bytes += 98765432) {
            plan_on(bytes);
            request.family = family_with_spans();
            if (graphs[i][0])
                request.graphs = graphs_of(graphs[i]);
            request.n_ctx = i == 2 ? 1145 : 0;
            plan = gpu_plan(&request);
            if (plan.fits && (plan.longest_context < plan.n_ctx ||
                              plan.most_sequences < plan.n_sequences ||
                              plan.largest_batch < plan.n_batch))
                fail_msg(
                        "%lld bytes: %d %d %d", (long long)bytes, plan.longest_context,
                        plan.most_sequences, plan.largest_batch);
            if (plan.fits)
                continue;
            struct burin_plan_request other = request;
            other.n_ctx = plan.longest_context;
            assert_true(!plan.longest_context || gpu_plan(&other).fits);
        }
}

/* Whatever is asked for, and whatever the memory: each number is planned before it is said. */
SPEC(advice_can_be_followed_where_pictures_belong_into_one_step)
{
    int one = 0, several = 0, limits = 0;
    for (int i = 0; i < 64; i++)
        for (int64_t bytes = 900 * MIB; bytes < 2 * GIB; bytes += 37 * MIB + 77777) {
            plan_on(8 * GIB);
            request.limit_bytes = bytes;
            request.family = family_with_spans();
            request.n_ctx = i & 1 ? 40000 : 0;
            request.n_sequences = i & 2 ? 304 : 0;
            request.n_batch = i & 4 ? 22528 : 0;
            request.kv_tokens = i & 8 ? 100000 : 0;
            request.n_frames = i & 16 ? 90 : 0;
            if (i & 32)
                request.graphs = graphs_of("step=1,32");
            plan = gpu_plan(&request);
            if (plan.fits)
                continue;
            const bool limit = strstr(plan.advice, "--vram-limit");
            const int taken = take_advice(&request, &plan);
            if (strstr(plan.advice, " -") && strstr(plan.advice, " -1"))
                fail_msg("%s", plan.advice);
            if (!taken || !gpu_plan(&request).fits)
                fail_msg("%lld bytes, %d: %s", (long long)bytes, i, plan.advice);
            one += !limit && taken == 1;
            several += taken > 1;
            limits += limit;
        }
    assert_true(one > 100 && several > 100 && limits > 10);
}

/* Any of the values, drawn by a fixed rule. */
static int64_t drawn(const int64_t *values, int n)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return values[(state >> 33) % (uint64_t)n];
}
#define DRAWN(...)                                                                         \
    drawn((const int64_t[]){ __VA_ARGS__ },                                                \
          sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))

/* What a command line may say: one limit, the others as the settings leave them. */
static void draw_request(void)
{
    static char many[4096] = "encode_image=70";
    static const char *const graphs[] = { "none", "step=1", "step=1,3",
                                          "encode_image=70,280,300", many };
    for (int n = 74; !strstr(many, ",1090"); n += 4)
        snprintf(many + strlen(many), sizeof many - strlen(many), ",%d", n);
    plan_on(DRAWN(7 * GIB / 8, GIB, 5 * GIB / 4, 3 * GIB / 2, 2 * GIB, 5 * GIB));
    if (DRAWN(0, 1))
        request.family = family_with_spans();
    request.n_ctx = (int)DRAWN(0, 0, -1, 5, 1120, 1121, 40000, 131072);
    request.n_sequences = (int)DRAWN(0, 0, 1, 3, 64, 300);
    request.n_batch = (int)DRAWN(0, 0, 64, 1119, 1120, 8193, BURIN_MAX_BATCH);
    request.n_draft = (int)DRAWN(0, 0, 4);
    request.images_given = DRAWN(0, 1);
    request.n_images = request.images_given ? (int)DRAWN(0, 1, 700) : 0;
    request.largest_picture = (int)DRAWN(0, 0, 280, 300); /* is on its way */
    request.n_frames = (int)DRAWN(0, 0, 90);
    request.n_clips = (int)DRAWN(0, 0, 7);
    request.padding_given = true;
    request.graph_padding = (int)DRAWN(25, 0, 90);
    if (DRAWN(0, 0, 1))
        request.graphs = graphs_of(graphs[DRAWN(0, 1, 2, 3, 4)]);
    request.limit_bytes = 0;
    switch (DRAWN(0, 1, 2, 3, 4, 5)) {
    case 0:
        request.limit = BURIN_LIMIT_RESERVE_DEFAULT;
        break;
    case 1:
        request.limit = BURIN_LIMIT_RESERVE;
        request.limit_bytes = DRAWN(MIB, 300 * (int64_t)MIB, GIB + 1, 100 * GIB);
        break;
    case 2:
        request.limit = BURIN_LIMIT_BYTES;
        request.limit_bytes = DRAWN(1, 800 * (int64_t)MIB, GIB + 1);
        break;
    case 3:
        request.limit = BURIN_LIMIT_FRACTION;
        request.limit_fraction = (double)DRAWN(1, 40, 93) / 100;
        break;
    case 4:
        request.limit = BURIN_LIMIT_RESERVE;
        request.kv_tokens = DRAWN(1, 5000, 100001, INT_MAX);
        break;
    default:
        request.limit = BURIN_LIMIT_RESERVE;
        request.kv_bytes = DRAWN(90000, 1000000001, 40 * GIB, 900000 * GIB);
    }
}

/* The advice speaks of the options that were given, and each that it names is taken. */
SPEC(whatever_is_asked_for_the_options_advised_are_accepted_beside_it_and_fit)
{
    int n = 0, pools = 0, bytes = 0;
    for (int i = 0; i < 1500; i++) {
        draw_request();
        const bool pool = request.kv_tokens || request.kv_bytes;
        if (burin_plan_make(&plan, &request, NULL) || plan.fits)
            continue;
        const struct burin_plan_request asked = request;
        const int taken = take_advice(&request, &plan);
        if (!taken) {
            assert_non_null(strstr(plan.advice, "No option mends it"));
            continue;
        }
        struct burin_plan mended;
        struct burin_error err = { 0 };
        if (burin_plan_make(&mended, &request, &err) || !mended.fits)
            fail_msg("%d: %s %s", i, plan.advice, err.message);
        assert_true(!pool || request.limit == asked.limit); /* one of them holds */
        char longest[64];
        snprintf(
                longest, sizeof longest, "items of at most %d soft tokens",
                mended.programs[2].n_eager);
        assert_true(!strstr(plan.advice, "encode_image=") || strstr(plan.advice, longest));
        if (asked.largest_picture) {
            assert_null(strstr(plan.advice, "--images"));
            assert_true(
                    !strstr(plan.advice, "encode_image=") ||
                    mended.programs[2].n_eager >= asked.largest_picture);
        }
        n++;
        pools += request.kv_tokens != asked.kv_tokens;
        bytes += request.kv_bytes != asked.kv_bytes;
    }
    assert_true(n > 400 && pools > 20 && bytes > 20);
}

SPEC(advice_says_what_was_given_and_not_what_became_of_it)
{
    static const struct {
        int64_t kv_tokens, kv_bytes, reserve;
        const char *said;
    } cases[] = {
        { INT_MAX, 0, 0, " in place of 2147483647." },
        { 0, 40 * GIB, 0, " in place of 40GiB." },
        { 0, 31 * GIB / 10, 0, " in place of 3.10 GiB." },
        { 0, 0, 100 * GIB, " in place of 100GiB." },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        plan_on(2 * GIB);
        request.n_sequences = 1;
        request.kv_tokens = cases[i].kv_tokens;
        request.kv_bytes = cases[i].kv_bytes;
        request.limit = BURIN_LIMIT_RESERVE;
        request.limit_bytes = cases[i].reserve;
        plan = gpu_plan(&request);
        if (!strstr(plan.advice, cases[i].said))
            fail_msg("%s", plan.advice);
    }
}

/* Many sequences of a few tokens may make a plan where one alone would not: that is no reason
 * to overlook a context that mends it. */
SPEC(one_option_is_advised_wherever_a_shorter_context_mends_it)
{
    int mended = 0;
    for (int64_t bytes = GIB; bytes < 2 * GIB; bytes += 7 * MIB + 777) {
        plan_on(8 * GIB);
        request.limit_bytes = bytes;
        request.family = family_with_spans();
        request.n_ctx = 131072;
        plan = gpu_plan(&request);
        if (plan.fits)
            continue;
        request.n_ctx = 1120;
        if (!gpu_plan(&request).fits)
            continue;
        if (!strstr(plan.advice, "Smallest change: --"))
            fail_msg("%lld bytes: %s", (long long)bytes, plan.advice);
        mended++;
    }
    assert_true(mended > 5);
}

SPEC(fewer_sequences_that_leave_more_to_KV_are_named_where_the_plan_chose)
{
    int met = 0;
    for (int64_t bytes = GIB + GIB / 8; bytes < 2 * GIB; bytes += 5 * MIB) {
        plan_on(bytes);
        plan = gpu_plan(&request);
        if (!plan.fewer_sequences)
            continue;
        request.n_sequences = plan.fewer_sequences;
        assert_int_equal(gpu_plan(&request).kv_tokens, plan.fewer_kv_tokens);
        assert_true(plan.fewer_kv_tokens > plan.kv_tokens);
        assert_int_equal(gpu_plan(&request).fewer_sequences, 0);
        met++;
    }
    assert_true(met > 10);
}

SPEC(narrower_keys_are_offered_where_they_mend_it)
{
    plan_on(GIB + GIB / 2);
    request.n_sequences = 1;
    request.n_ctx = 131072;
    request.n_batch = 64;
    const int64_t whole = gpu_plan(&request).total_bytes;
    const struct burin_plan all = gpu_plan(&request);
    const int64_t need =
            all.fits ? whole - owner_bytes(&all, "kv") + 2048 * 64 * 1280 : whole;
    request.limit_bytes = need - 2048 * 64 * 1280 * (int64_t)45 / 100;

    plan = gpu_plan(&request);

    assert_false(plan.fits);
    assert_string_equal(
            plan.advice, "Smallest change: --kv-cache-dtype fp8 in place of bf16.");
}

/* A start would refuse them. Where nothing can be run, tables are planned for what may come. */
SPEC(narrower_keys_that_no_kernel_reads_are_not_offered)
{
    static burin_enqueue *const both[] = { enqueue_nothing, enqueue_nothing };
    static burin_enqueue *const first[] = { enqueue_nothing, NULL };
    static burin_enqueue *const *const cases[] = { NULL, both, first };
    struct burin_family family = vision_families[0];
    struct burin_program programs[4];
    memcpy(programs, vision_programs, sizeof programs);
    family.programs = programs;
    for (int i = 0; i < 3; i++) {
        programs[0].enqueue = cases[i];
        plan_on(4 * GIB);
        request.family = &family;
        request.n_sequences = 1;
        request.n_ctx = 131072;
        request.kv_tokens = 131072;
        request.limit_bytes = gpu_plan(&request).total_bytes - 2 * MIB;
        const bool mended = strstr(gpu_plan(&request).advice, "--kv-cache-dtype");
        assert_int_equal(mended, i < 2);

        /* The least that it runs in, too, is with keys that can be read. */
        plan_on(980 * MIB);
        request.family = &family;
        plan = gpu_plan(&request);
        assert_non_null(strstr(plan.advice, "No option mends it"));
        assert_int_equal(strstr(plan.advice, "--kv-cache-dtype") != NULL, i < 2);
    }
}
