/* Which device an engine takes, and how much of a GPU: before anything on it is touched. */
#include "runtime/base/clock.h"
#include "runtime/engine/engine.h"
#include "tests/runtime/engine/fake_gpu.h"
#include "tests/support/test.h"
#include "tests/support/virtual_libraries.h"

static const int64_t GIB = (int64_t)1 << 30;

static struct burin_virtual *machine;
static struct burin_engine *engine;
static struct burin_error why;

static void machine_with(int n_cards, int sm)
{
    const struct burin_card card = { .name = "card",
                                     .total_bytes = 4 * GIB,
                                     .available_bytes = 4 * GIB,
                                     .sm = sm,
                                     .n_processors = 10 };
    struct burin_virtual_options options = burin_virtual_default(&card);
    options.n_cards = n_cards;
    for (int i = 1; i < n_cards; i++)
        options.cards[i] = card;
    host_kernels = fake_host_kernels;
    options.body = &host_body;
    burin_virtual_close(machine);
    assert_int_equal(burin_virtual_open(&machine, &options, NULL), BURIN_OK);
}

static struct burin_options options_for(const char *device)
{
    fake_sees = true;
    return (struct burin_options){ .model = &fake_gpu_model,
                                   .device = device,
                                   .n_threads = 1,
                                   .n_sequences = 2,
                                   .n_images = 1,
                                   .kv_tokens = (int64_t)4 * 24,
                                   .limit = BURIN_LIMIT_RESERVE,
                                   .strict = true };
}

static enum burin_status open_on(const struct burin_options *options)
{
    engine = NULL;
    why = (struct burin_error){ 0 };
    return burin_engine_open(&engine, options, &why);
}

static const char *device_of(const char *device)
{
    static char text[128];
    const struct burin_options options = options_for(device);
    if (open_on(&options))
        fail_msg("%s", why.message);
    snprintf(text, sizeof text, "%s", burin_engine_info(engine).device);
    burin_engine_close(engine);
    return text;
}

static void assert_refused(
        const struct burin_options *options, enum burin_status status, const char *words)
{
    assert_int_equal(open_on(options), status);
    assert_null(engine);
    if (!strstr(why.message, words))
        fail_msg("%s", why.message);
    assert_int_equal(burin_virtual_memory(machine, 0).ours[0], 0);
}

/* ---- Which ------------------------------------------------------------------------------- */

SPEC(auto_takes_a_GPU_where_there_is_one_that_runs_the_model_and_says_which)
{
    machine_with(2, 86);
    assert_int_equal(strncmp(device_of(NULL), "cuda:0, ", 8), 0);
    assert_int_equal(strncmp(device_of("auto"), "cuda:0, ", 8), 0);
    assert_int_equal(strncmp(device_of("cuda:1"), "cuda:1, ", 8), 0);
    assert_string_equal(device_of("cpu"), "cpu");
}

SPEC(auto_takes_the_CPU_where_there_is_no_GPU_or_none_that_is_new_enough_and_knows_why)
{
    struct burin_options options = options_for("auto");
    machine_with(0, 0);
    assert_int_equal(open_on(&options), BURIN_OK);
    assert_string_equal(burin_engine_info(engine).device, "cpu");
    assert_true(strlen(burin_engine_info(engine).no_gpu) > 0);
    burin_engine_close(engine);

    machine_with(1, 75);
    assert_int_equal(open_on(&options), BURIN_OK);
    assert_string_equal(burin_engine_info(engine).device, "cpu");
    assert_non_null(strstr(burin_engine_info(engine).no_gpu, "sm_75"));
    burin_engine_close(engine);
}

SPEC(a_GPU_that_is_asked_for_and_cannot_be_had_is_refused)
{
    struct burin_options options = options_for("cuda:3");
    machine_with(2, 86);
    assert_refused(&options, BURIN_EUSAGE, "there is no CUDA device 3: this machine has 2");
    options.device = "gpu";
    assert_refused(
            &options, BURIN_EUSAGE, "--device is auto, cpu, cuda or cuda:1, not 'gpu'");
    options.device = "cuda:x";
    assert_refused(&options, BURIN_EUSAGE, "not 'cuda:x'");
    options.device = "cuda";
    options.exact = true;
    assert_refused(&options, BURIN_EUSAGE, "exact on CPUs only");
    options.exact = false;
    machine_with(1, 75);
    assert_refused(&options, BURIN_EUSAGE, "older than what fake has tables for: sm80");
    options.target = "sm90";
    assert_refused(&options, BURIN_EUSAGE, "no such family");
}

SPEC(a_family_without_kernels_says_so_and_auto_goes_on_without_it)
{
    struct burin_program programs[2];
    struct burin_family families[2];
    struct burin_model model = fake_gpu_model;
    memcpy(programs, fake_gpu_programs, sizeof programs);
    memcpy(families, fake_gpu_families, sizeof families);
    programs[0].enqueue = NULL;
    programs[0].missing = "softcap";
    families[0].programs = programs;
    model.families = families;
    struct burin_options options = options_for("cuda");
    options.model = &model;
    machine_with(1, 86);
    assert_refused(
            &options, BURIN_EUSAGE, "no kernels, none yet for softcap: --device cpu");

    options.device = "auto";
    assert_int_equal(open_on(&options), BURIN_OK);
    assert_string_equal(burin_engine_info(engine).device, "cpu");
    burin_engine_close(engine);
}

SPEC(keys_and_values_of_a_type_without_kernels_say_so_and_which_type_has_some)
{
    static burin_enqueue *const none[] = { NULL };
    static burin_enqueue *const second[] = { NULL, fake_enqueue_step };
    const struct burin_kv_layout kv[] = { { .dtype = BURIN_FP8 }, fake_kv[0] };
    struct burin_program programs[2];
    struct burin_family families[2];
    struct burin_model model = fake_gpu_model;
    memcpy(programs, fake_gpu_programs, sizeof programs);
    memcpy(families, fake_gpu_families, sizeof families);
    programs[0].enqueue = none;
    families[0].programs = programs;
    model.families = families;
    struct burin_options options = options_for("cuda");
    options.model = &model;
    options.kv_dtype_given = true;
    options.kv_dtype = BURIN_BF16;
    machine_with(1, 86);
    assert_refused(
            &options, BURIN_EUSAGE,
            "--kv-cache-dtype bf16: there are no kernels for it on a GPU (sm80)");

    programs[0].enqueue = second;
    families[0].kv = kv;
    families[0].n_kv = 2;
    for (int i = 0; i < 2; i++) {
        options.kv_dtype =
                i ? BURIN_FP8 : BURIN_F32; /* planned only, and not there at all */
        assert_refused(
                &options, BURIN_EUSAGE,
                "there are no kernels for it on a GPU (sm80); --kv-cache-dtype bf16 runs");
        assert_null(strstr(why.message, "fp8 or"));
    }
}

SPEC(auto_without_NVRTC_takes_the_CPU_and_says_what_needs_it)
{
    struct burin_options options = options_for("auto");
    machine_with(1, 86);
    nvrtc_is_missing = true;
    assert_int_equal(open_on(&options), BURIN_OK);
    assert_string_equal(burin_engine_info(engine).device, "cpu");
    assert_true(burin_engine_info(engine).passed_gpu);
    assert_non_null(
            strstr(burin_engine_info(engine).no_gpu,
                   "cuda:0: kernels that are not embedded need NVRTC"));
    burin_engine_close(engine);

    options.device = "cuda";
    assert_refused(&options, BURIN_EMISSING, "need NVRTC");
    nvrtc_is_missing = false;
}

/* What a plan is told of the GPU that is there. */
static char passed_over[1024];

static enum burin_status look_for(const struct burin_options *options, bool *found)
{
    struct burin_card card;
    why = (struct burin_error){ 0 };
    return burin_engine_card(options, &card, found, passed_over, sizeof passed_over, &why);
}

SPEC(a_plan_takes_no_GPU_that_a_start_refuses)
{
    struct burin_options automatic = options_for("auto"), given = options_for("cuda");
    bool found = false;
    machine_with(1, 86);
    assert_int_equal(look_for(&given, &found), BURIN_OK);
    assert_true(found);

    nvrtc_is_missing = true;
    assert_int_equal(look_for(&given, &found), BURIN_EMISSING);
    assert_non_null(strstr(why.message, "need NVRTC"));
    assert_int_equal(look_for(&automatic, &found), BURIN_OK);
    assert_false(found);
    assert_non_null(
            strstr(passed_over, "cuda:0: kernels that are not embedded need NVRTC"));
    nvrtc_is_missing = false;
    assert_int_equal(look_for(&automatic, &found), BURIN_OK);
    assert_true(found);
    assert_string_equal(passed_over, "");

    automatic.kv_dtype_given = given.kv_dtype_given = true;
    automatic.kv_dtype = given.kv_dtype = BURIN_NVFP4;
    assert_int_equal(look_for(&given, &found), BURIN_EUSAGE);
    assert_non_null(strstr(why.message, "--kv-cache-dtype bf16 runs"));
    assert_int_equal(look_for(&automatic, &found), BURIN_OK);
    assert_false(found);
}

SPEC(without_cuBLASLt_plan_and_start_say_that_fast_gemm_may_be_left_out)
{
    const char *const devices[] = { "auto", "cuda" };
    bool found = false;
    machine_with(1, 86);
    for (int i = 0; i < 2; i++) {
        struct burin_options options = options_for(devices[i]);
        options.fast_gemm = true;
        assert_int_equal(look_for(&options, &found), BURIN_EMISSING);
        assert_non_null(strstr(why.message, "Without --fast-gemm"));
        assert_refused(&options, BURIN_EMISSING, "Without --fast-gemm");
        assert_null(strstr(why.message, "--device cpu"));
    }
}

SPEC(what_the_CPU_refuses_after_a_GPU_was_passed_over_says_why_it_was)
{
    struct burin_options options = options_for("auto");
    options.kv_dtype_given = true;
    options.kv_dtype = BURIN_FP8;
    machine_with(1, 75);
    assert_refused(&options, BURIN_EUSAGE, "(No GPU is used: cuda:0: ");
    assert_non_null(strstr(why.message, "sm_75"));
    options.kv_dtype_given = false;

    options.target = "sm80";
    assert_refused(&options, BURIN_EUSAGE, "(No GPU is used: cuda:0: ");
    machine_with(0, 0);
    assert_refused(&options, BURIN_EUSAGE, "(No GPU is used: ");
}

SPEC(a_start_that_fails_after_auto_took_the_GPU_names_the_CPU)
{
    struct burin_options options = options_for("auto");
    machine_with(1, 86);
    burin_virtual_fail(
            machine, "cuDevicePrimaryCtxRetain", 1, CU_OUT_OF_MEMORY, BURIN_FAULT_ONCE);
    assert_refused(&options, BURIN_ENOMEM, "--device cpu");

    options.device = "cuda";
    machine_with(1, 86);
    burin_virtual_fail(
            machine, "cuDevicePrimaryCtxRetain", 1, CU_OUT_OF_MEMORY, BURIN_FAULT_ONCE);
    assert_int_equal(open_on(&options), BURIN_ENOMEM);
    assert_null(strstr(why.message, "--device cpu"));
}

/* ---- How much ---------------------------------------------------------------------------- */

SPEC(a_cap_above_what_is_free_is_refused_with_both_numbers)
{
    struct burin_options options = options_for("cuda");
    options.limit = BURIN_LIMIT_BYTES;
    options.limit_bytes = 3 * GIB;
    machine_with(1, 86);
    burin_virtual_neighbour(machine, 0, NULL, 0, 2 * GIB);
    assert_refused(
            &options, BURIN_ENOMEM,
            "3.00 GiB may be used (--vram-limit), and virtual card has 2.00 GiB free of "
            "4.00 "
            "GiB");
    assert_non_null(strstr(why.message, "--wait-for-vram 60"));

    options.limit = BURIN_LIMIT_FRACTION;
    options.limit_fraction = 0.9;
    assert_refused(&options, BURIN_ENOMEM, "(--vram-fraction)");
}

SPEC(waiting_goes_on_until_there_is_room_and_not_longer)
{
    struct burin_options options = options_for("cuda");
    options.limit = BURIN_LIMIT_BYTES;
    options.limit_bytes = 3 * GIB;
    options.wait_s = 30;
    machine_with(1, 86);
    burin_virtual_neighbour(machine, 0, NULL, 0, 2 * GIB);
    burin_virtual_neighbour(machine, 0, "nvmlDeviceGetMemoryInfo_v2", 4, -2 * GIB);

    assert_int_equal(open_on(&options), BURIN_OK);

    assert_true(burin_virtual_n_calls(machine, "nvmlDeviceGetMemoryInfo_v2") >= 4);
    burin_engine_close(engine);
}

SPEC(auto_takes_the_GPU_that_holds_the_model_and_the_CPU_where_none_does)
{
    struct burin_options options = options_for("auto");
    machine_with(2, 86);
    burin_virtual_neighbour(machine, 0, NULL, 0, 4 * GIB - (16 << 20));
    assert_int_equal(open_on(&options), BURIN_OK);
    assert_int_equal(strncmp(burin_engine_info(engine).device, "cuda:1, ", 8), 0);
    assert_true(burin_engine_info(engine).passed_gpu);
    assert_int_equal(
            strncmp(burin_engine_info(engine).no_gpu, "cuda:0: fake needs ", 19), 0);
    burin_engine_close(engine);

    burin_virtual_neighbour(machine, 1, NULL, 0, 4 * GIB - (16 << 20));
    assert_int_equal(open_on(&options), BURIN_OK);
    const struct burin_engine_info info = burin_engine_info(engine);
    assert_string_equal(info.device, "cpu");
    assert_non_null(strstr(info.no_gpu, "; cuda:1: fake needs "));
    assert_null(strchr(info.no_gpu, '\n'));
    burin_engine_close(engine);

    options.device = "cuda";
    assert_refused(&options, BURIN_ENOMEM, "short by");
    options.device = "auto";
    options.target = "sm80"; /* no CPU's */
    assert_refused(&options, BURIN_ENOMEM, "short by");
    assert_null(strstr(why.message, "No GPU is used"));
}

SPEC(a_family_of_a_GPU_that_none_here_runs_is_no_plan_of_the_CPU)
{
    struct burin_options options = options_for("auto");
    struct burin_card card;
    bool found;
    options.target = "sm80";
    machine_with(1, 75);
    assert_int_equal(
            burin_engine_card(&options, &card, &found, NULL, 0, &why), BURIN_EUSAGE);
    assert_non_null(
            strstr(why.message, "--target sm80 is of a GPU, and none here runs it"));
    assert_non_null(
            strstr(why.message, "cuda:0: --target sm80 needs compute capability 8.0"));
    assert_refused(&options, BURIN_EUSAGE, "--target sm80 is of a GPU, and this is to be");

    machine_with(1, 86);
    assert_int_equal(burin_engine_card(&options, &card, &found, NULL, 0, &why), BURIN_OK);
    assert_true(found && card.sm == 86);
    options.device = "cpu"; /* a card of another plan is not asked for */
    assert_int_equal(burin_engine_card(&options, &card, &found, NULL, 0, &why), BURIN_OK);
    assert_false(found);
}

SPEC(auto_asks_every_GPU_before_it_waits_for_one)
{
    struct burin_options options = options_for("auto");
    options.wait_s = 30;
    machine_with(2, 86);
    burin_virtual_neighbour(machine, 0, NULL, 0, 4 * GIB - (16 << 20));
    assert_int_equal(open_on(&options), BURIN_OK);
    assert_int_equal(strncmp(burin_engine_info(engine).device, "cuda:1, ", 8), 0);
    burin_engine_close(engine);

    machine_with(1, 86);
    burin_virtual_neighbour(machine, 0, NULL, 0, 4 * GIB - (16 << 20));
    burin_virtual_neighbour(
            machine, 0, "nvmlDeviceGetMemoryInfo_v2", 8, -(4 * GIB - (16 << 20)));
    assert_int_equal(open_on(&options), BURIN_OK);
    assert_int_equal(strncmp(burin_engine_info(engine).device, "cuda:0, ", 8), 0);
    assert_false(burin_engine_info(engine).no_gpu[0]);
    burin_engine_close(engine);
}

static bool stop_waiting(void *user, const char *step, size_t done, size_t total)
{
    (void)user;
    (void)done;
    (void)total;
    return strcmp(step, "waiting for memory") != 0;
}

SPEC(waiting_can_be_interrupted)
{
    struct burin_options options = options_for("cuda");
    options.wait_s = 3600;
    options.on_progress = stop_waiting;
    machine_with(1, 86);
    burin_virtual_neighbour(machine, 0, NULL, 0, 4 * GIB - (16 << 20));
    assert_refused(&options, BURIN_ESTOPPED, "interrupted while waiting");
    options.device = "auto";
    assert_refused(&options, BURIN_ESTOPPED, "interrupted while waiting");
}

SPEC(what_the_whole_card_has_no_room_for_is_not_waited_for)
{
    struct burin_options options = options_for("cuda");
    options.wait_s = 3600;
    options.kv_tokens = 0;
    options.kv_bytes = 8 * GIB;
    machine_with(1, 86);
    burin_virtual_neighbour(machine, 0, NULL, 0, 2 * GIB);
    assert_refused(&options, BURIN_ENOMEM, "short by");
    assert_null(strstr(why.message, "wait"));

    options.kv_bytes = GIB / 2;
    options.limit = BURIN_LIMIT_BYTES;
    options.limit_bytes = 5 * GIB;
    assert_refused(&options, BURIN_ENOMEM, "5.00 GiB may be used");
    assert_null(strstr(why.message, "wait"));
}

SPEC(waiting_in_vain_is_told_and_is_one_for_all_GPUs)
{
    struct burin_options options = options_for("auto");
    options.wait_s = 1;
    machine_with(3, 86);
    for (int i = 0; i < 3; i++)
        burin_virtual_neighbour(machine, i, NULL, 0, 4 * GIB - (16 << 20));
    const double begin_ms = burin_now_ms();
    assert_int_equal(open_on(&options), BURIN_OK);
    assert_true(burin_now_ms() - begin_ms < 2500);
    const char *no_gpu = burin_engine_info(engine).no_gpu;
    assert_string_equal(burin_engine_info(engine).device, "cpu");
    assert_non_null(strstr(no_gpu, " bytes); cuda:1: fake needs "));
    assert_non_null(strstr(no_gpu, " bytes); cuda:2: fake needs "));
    assert_non_null(strstr(no_gpu, " bytes); waited 1 s for memory"));
    burin_engine_close(engine);

    options.device = "cuda:2";
    assert_refused(&options, BURIN_ENOMEM, "(Waited 1 s for memory.)");
    assert_null(strstr(why.message, "--wait-for-vram"));
}

SPEC(while_auto_waits_the_first_GPU_that_has_memory_is_taken)
{
    struct burin_options options = options_for("auto");
    options.wait_s = 60;
    machine_with(2, 86);
    for (int i = 0; i < 2; i++)
        burin_virtual_neighbour(machine, i, NULL, 0, 4 * GIB - (16 << 20));
    burin_virtual_neighbour(
            machine, 1, "nvmlDeviceGetMemoryInfo_v2", 12, -(4 * GIB - (16 << 20)));
    const double begin_ms = burin_now_ms();
    assert_int_equal(open_on(&options), BURIN_OK);
    assert_int_equal(strncmp(burin_engine_info(engine).device, "cuda:1, ", 8), 0);
    assert_true(burin_now_ms() - begin_ms < 20000);
    burin_engine_close(engine);
}

SPEC(what_does_not_fit_by_plan_touches_nothing)
{
    struct burin_options options = options_for("cuda");
    options.limit = BURIN_LIMIT_BYTES;
    options.limit_bytes = GIB / 2;
    machine_with(1, 86);
    assert_refused(&options, BURIN_ENOMEM, "short by");
    assert_int_equal(burin_virtual_n_calls(machine, "cuDevicePrimaryCtxRetain"), 0);
    burin_virtual_close(machine);
    machine = NULL;
}

/* ---- The report --------------------------------------------------------------------------- */

SPEC(a_start_is_told_owner_by_owner_and_a_CPU_has_none)
{
    struct burin_options options = options_for("cuda");
    static char text[8192];
    machine_with(1, 86);
    assert_int_equal(open_on(&options), BURIN_OK);
    FILE *out = fmemopen(text, sizeof text, "w");
    assert_true(burin_engine_start_report(engine, out));
    fclose(out);
    burin_engine_close(engine);
    assert_non_null(strstr(text, "planned bytes    obtained bytes"));
    assert_non_null(strstr(text, "  kv "));
    assert_non_null(strstr(text, "graphs: "));

    options.device = "cpu";
    assert_int_equal(open_on(&options), BURIN_OK);
    assert_false(burin_engine_start_report(engine, stdout));
    burin_engine_close(engine);
    burin_virtual_close(machine);
    machine = NULL;
}
