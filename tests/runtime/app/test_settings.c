#include "runtime/app/settings.h"
#include "tests/support/test.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 24 };

static struct burin_error err;

/* Settings of a command line, its words separated by single spaces. */
static enum burin_status read_line(
        struct burin_settings *settings, enum burin_command command, const char *line)
{
    static char copy[512];
    static const char *argv[MAX_WORDS];
    int argc = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    return burin_settings_read(settings, command, argc, argv, &err);
}

static struct burin_settings settings_of(enum burin_command command, const char *line)
{
    struct burin_settings settings;
    if (read_line(&settings, command, line))
        fail_msg("%s: %s", line, err.message);
    return settings;
}

static void assert_refused(enum burin_command command, const char *line, const char *says)
{
    struct burin_settings settings;
    assert_int_equal(read_line(&settings, command, line), BURIN_EUSAGE);
    if (!strstr(err.message, says))
        fail_msg("%s: expected \"%s\" in \"%s\"", line, says, err.message);
}

SPEC(without_options_everything_is_the_default)
{
    const struct burin_settings settings = settings_of(BURIN_RUN, "");

    assert_int_equal(settings.n_threads, -1);
    assert_int_equal(settings.n_predict, -1);
    assert_int_equal(settings.n_ctx, 0);
    assert_int_equal(settings.n_batch, 2048);
    assert_false(settings.temperature.given);
    assert_false(settings.top_p.given);
    assert_int_equal(settings.seed, -1);
    assert_null(settings.weights);
}

SPEC(a_value_stands_behind_its_option_or_an_equals_sign)
{
    assert_int_equal(settings_of(BURIN_RUN, "-n 7").n_predict, 7);
    assert_int_equal(settings_of(BURIN_RUN, "--predict=7").n_predict, 7);
    assert_int_equal(settings_of(BURIN_RUN, "-n -1").n_predict, -1);
    assert_string_equal(settings_of(BURIN_RUN, "--prompt=").prompt, "");
}

SPEC(spellings_of_other_engines_are_accepted_silently)
{
    assert_int_equal(settings_of(BURIN_RUN, "--max-tokens 9").n_predict, 9);
    assert_int_equal(settings_of(BURIN_PLAN, "--max-model-len 512").n_ctx, 512);
    assert_int_equal(settings_of(BURIN_PLAN, "--max-num-seqs 3").n_sequences, 3);
    assert_string_equal(settings_of(BURIN_EVAL, "-ctk f32").kv_dtype, "f32");
    const struct burin_settings settings = settings_of(BURIN_RUN, "-ngl 99 --mmproj x");
    assert_int_equal(settings.notes.n, 2);
}

SPEC(what_is_no_option_is_a_word_and_two_dashes_end_the_options)
{
    const struct burin_settings settings =
            settings_of(BURIN_RUN, "why -n 3 is - -- -n sky");

    assert_int_equal(settings.n_predict, 3);
    assert_int_equal(settings.n_words, 5);
    assert_string_equal(settings.words[0], "why");
    assert_string_equal(settings.words[2], "-");
    assert_string_equal(settings.words[3], "-n");
    assert_string_equal(settings.words[4], "sky");
}

SPEC(the_command_line_wins_over_the_environment_and_it_over_the_default)
{
    setenv("BURIN_CTX_SIZE", "640", 1);
    setenv("BURIN_EXACT", "yes", 1);
    setenv("BURIN_STOP", "x", 1);
    assert_int_equal(settings_of(BURIN_RUN, "").n_ctx, 640);
    assert_true(settings_of(BURIN_RUN, "").exact);
    assert_int_equal(settings_of(BURIN_RUN, "-c 64").n_ctx, 64);
    assert_false(settings_of(BURIN_RUN, "--exact=0").exact);
    const struct burin_settings settings = settings_of(BURIN_RUN, "--stop a --stop b");
    assert_int_equal(settings.stop.n, 2);
    assert_string_equal(settings.stop.values[0], "a");

    setenv("BURIN_CTX_SIZE", "many", 1);
    assert_refused(BURIN_RUN, "", "BURIN_CTX_SIZE takes a whole number, not 'many'");
    unsetenv("BURIN_CTX_SIZE");
    unsetenv("BURIN_EXACT");
    unsetenv("BURIN_STOP");
}

/* The last of a row's shown spellings, "--ids"; commands may each have a row of it. */
static const char *long_name(const char *names)
{
    const char *space = strrchr(names, ' ');
    return space ? space + 1 : names;
}

/* The text of a command's --help. */
static const char *help_of(enum burin_command command)
{
    static char text[8192];
    memset(text, 0, sizeof text);
    FILE *out = fmemopen(text, sizeof text - 1, "w");
    burin_settings_help(command, out);
    fclose(out);
    return text;
}

SPEC(the_environment_s_name_is_the_one_that_help_shows)
{
    assert_non_null(strstr(help_of(BURIN_RUN), "--eager"));
    setenv("BURIN_EAGER", "1", 1);
    assert_true(settings_of(BURIN_RUN, "").eager);
    assert_false(settings_of(BURIN_RUN, "--eager=0").eager);
    unsetenv("BURIN_EAGER");

    const char *names, *help, *value;
    unsigned commands;
    for (int i = 0; burin_settings_row(i, &names, &commands, &help, &value); i++) {
        char variable[64];
        if (!*names)
            continue;
        snprintf(variable, sizeof variable, "BURIN_%s", long_name(names) + 2);
        for (char *c = variable; *c; c++)
            *c = (char)(*c == '-' ? '_' : toupper((unsigned char)*c));
        const enum burin_command command = (enum burin_command)__builtin_ctz(commands);
        struct burin_settings with, without = settings_of(command, "");
        setenv(variable, "1", 1);
        const enum burin_status status = read_line(&with, command, "");
        unsetenv(variable);
        if (!status && memcmp(&with, &without, offsetof(struct burin_settings, words)) == 0)
            fail_msg("%s sets nothing", variable);
    }
}

SPEC(the_example_of_graphs_is_one_that_the_command_takes)
{
    const char *const steps = "step=1,2,4"; /* of several sequences: only a plan has them */
    assert_non_null(strstr(help_of(BURIN_PLAN), steps));
    for (int command = 0; command < BURIN_N_COMMANDS; command++)
        if (command != BURIN_PLAN)
            assert_null(strstr(help_of((enum burin_command)command), steps));
    assert_non_null(strstr(help_of(BURIN_EVAL), "or step=1 (repeat: encode_image=70,280)"));
}

SPEC(two_of_which_one_holds_are_refused_by_their_names)
{
    assert_refused(
            BURIN_RUN, "--vram-limit 1GiB --vram-reserve 2GiB",
            "give one of --vram-limit and --vram-reserve");
    assert_refused(
            BURIN_RUN, "--kv-cache-memory-bytes 1GiB --kv-tokens 7",
            "give one of --kv-tokens and --kv-bytes");
    assert_refused(
            BURIN_RUN, "--eager --graphs step=1", "give one of --graphs and --eager");
    assert_refused(
            BURIN_PLAN, "--card l4 --device cuda:1", "give one of --device and --card");
    setenv("BURIN_VRAM_FRACTION", "0.5", 1);
    setenv("BURIN_VRAM_LIMIT", "1GiB", 1);
    assert_refused(BURIN_RUN, "", "give one of BURIN_VRAM_LIMIT and BURIN_VRAM_FRACTION");
    unsetenv("BURIN_VRAM_FRACTION");
    unsetenv("BURIN_VRAM_LIMIT");

    assert_refused(
            BURIN_RUN, "--kv-tokens 64 --vram-limit 1GiB",
            "give one of --kv-tokens and --vram-limit");
    assert_int_equal(settings_of(BURIN_RUN, "--eager=0 --graphs step=1").graphs.n, 1);
}

SPEC(the_command_line_switches_off_what_the_environment_says_in_another_way)
{
    setenv("BURIN_VRAM_RESERVE", "1GiB", 1);
    setenv("BURIN_GRAPHS", "step=1", 1);
    setenv("BURIN_DEVICE", "cuda:1", 1);
    struct burin_settings settings =
            settings_of(BURIN_PLAN, "--vram-limit 2GiB --eager --card l4");
    assert_true(settings.vram_limit.given && !settings.vram_reserve.given);
    assert_true(settings.eager && !settings.graphs.n);
    assert_true(settings.card && !settings.device);

    settings = settings_of(BURIN_PLAN, "--kv-tokens 7 --eager=0");
    assert_true(settings.kv_tokens == 7 && !settings.vram_reserve.given);
    assert_int_equal(settings.graphs.n, 1);
    unsetenv("BURIN_VRAM_RESERVE");
    unsetenv("BURIN_KV_BYTES");
    unsetenv("BURIN_GRAPHS");
    unsetenv("BURIN_DEVICE");
}

SPEC(a_device_that_is_none_is_refused_whatever_the_command)
{
    assert_refused(BURIN_EVAL, "--device gpu", "--device is auto, cpu, cuda or cuda:1");
    assert_refused(BURIN_PLAN, "-dev cuda:-1 --card l4", "-dev is auto, cpu, cuda or");
    setenv("BURIN_DEVICE", "cuda:99999999999999", 1);
    assert_refused(BURIN_BENCH, "", "BURIN_DEVICE is auto, cpu, cuda or cuda:1");
    unsetenv("BURIN_DEVICE");
    assert_string_equal(settings_of(BURIN_RUN, "--device cuda:3").device, "cuda:3");
}

SPEC(what_only_a_GPU_does_is_not_asked_of_a_CPU)
{
    assert_refused(
            BURIN_RUN, "--device cpu --graphs step=1 --fast-gemm --wait-for-vram 3",
            "leave out --wait-for-vram, --graphs, --fast-gemm");
    assert_refused(
            BURIN_PLAN, "--graph-padding 3 --device cpu", "leave out --graph-padding");

    /* What is true of a CPU, what a GPU may be asked, and what a machine's environment says. */
    settings_of(BURIN_RUN, "--device cpu --graphs none");
    settings_of(BURIN_RUN, "--device cpu --eager");
    settings_of(BURIN_RUN, "--device auto --fast-gemm");
    setenv("BURIN_FAST_GEMM", "1", 1);
    settings_of(BURIN_RUN, "--device cpu");
    unsetenv("BURIN_FAST_GEMM");
}

SPEC(a_context_of_zero_is_the_model_s_own)
{
    assert_int_equal(settings_of(BURIN_RUN, "-c 0").n_ctx, -1);
    assert_int_equal(settings_of(BURIN_RUN, "-c -1").n_ctx, -1);
}

SPEC(an_unknown_option_is_told_what_is_near)
{
    assert_refused(BURIN_RUN, "--tempp 1", "unknown option --tempp; --temp is near");
    assert_refused(BURIN_RUN, "--thread=2", "unknown option --thread; --threads is near");
    assert_refused(BURIN_PLAN, "--contxt 9", "--ctx is near");
    assert_refused(BURIN_RUN, "--frobnicate", "unknown option --frobnicate");
}

SPEC(an_option_of_another_command_is_told_whose_it_is)
{
    assert_refused(
            BURIN_EVAL, "--temp 1", "--temp is an option of `run`, `eval` has no use");
    assert_refused(BURIN_RUN, "--window 5", "--window is an option of `eval`");
}

SPEC(numbers_are_whole_where_they_count_and_within_their_range)
{
    assert_refused(BURIN_RUN, "-n 1.5", "-n takes a whole number, not '1.5'");
    assert_refused(BURIN_RUN, "-n 0x10", "-n takes a whole number, not '0x10'");
    assert_refused(BURIN_RUN, "-n 1e99", "not 1e99");
    assert_refused(BURIN_RUN, "-n -2", "-n is at least -1, not -2");
    assert_refused(BURIN_RUN, "--top-p 1.01", "--top-p goes from 0 to 1, not 1.01");
    assert_refused(BURIN_RUN, "--top-p 0", "--top-p is above 0 and at most 1, not 0");
    assert_refused(BURIN_RUN, "--top-p 1e-99", "--top-p is above 0 and at most 1");
    assert_refused(
            BURIN_RUN, "--vram-fraction 0",
            "--vram-fraction is above 0 and at most 1, not 0");
    assert_refused(BURIN_RUN, "--temp nan", "--temp takes a number, not 'nan'");
    assert_refused(BURIN_RUN, "--temp ten", "--temp takes a number, not 'ten'");
    assert_refused(BURIN_RUN, "-t 2000", "-t goes from -1 to 1024, not 2000");
    assert_refused(BURIN_BENCH, "-o yaml", "-o is one of md|json, not 'yaml'");
    assert_refused(BURIN_PLAN, "--vram-limit 3bananas", "--vram-limit: 'bananas'");
    assert_int_equal(
            settings_of(BURIN_RUN, "--seed 9007199254740991").seed, 9007199254740991);
}

SPEC(seconds_may_say_so)
{
    assert_int_equal(settings_of(BURIN_RUN, "--wait-for-vram 60").wait_for_vram, 60);
    assert_int_equal(settings_of(BURIN_RUN, "--wait-for-vram 60s").wait_for_vram, 60);
    assert_refused(BURIN_RUN, "--wait-for-vram s", "takes a whole number");
    assert_refused(BURIN_RUN, "--wait-for-vram 60ss", "takes a whole number");
    assert_refused(BURIN_RUN, "--wait-for-vram 90000s", "goes from 0 to 86400");
}

SPEC(an_option_without_its_value_says_what_it_needs)
{
    assert_refused(BURIN_RUN, "-m", "-m needs PATH behind it");
    assert_refused(
            BURIN_RUN, "-m --json", "-m needs PATH behind it, found the option --json");
}

SPEC(bench_takes_lists)
{
    const struct burin_settings settings = settings_of(BURIN_BENCH, "-p 7,11 -t 1,2,-1");

    assert_int_equal(settings.bench_prompt.n, 2);
    assert_int_equal(settings.bench_prompt.values[1], 11);
    assert_int_equal(settings.bench_threads.n, 3);
    assert_int_equal(settings.bench_generate.values[0], 128);
    assert_refused(BURIN_BENCH, "-p 7,", "-p takes a whole number, not ''");
    assert_refused(
            BURIN_BENCH, "-p 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "at most 16 numbers");
}

SPEC(sizes_are_read_with_their_units)
{
    assert_int_equal(
            settings_of(BURIN_PLAN, "--vram-limit 512MiB").vram_limit.bytes, 512 << 20);
    assert_int_equal(settings_of(BURIN_PLAN, "--kv-bytes 1.5k").kv_bytes.bytes, 1536);
}

SPEC(pictures_and_videos_keep_the_order_they_were_given_in)
{
    setenv("BURIN_IMAGE", "elsewhere.png", 1);
    const struct burin_attachments list =
            settings_of(BURIN_RUN, "--image a.png --video=b.mp4 --image c.jpg what is it")
                    .attachments;
    assert_int_equal(settings_of(BURIN_RUN, "").attachments.n, 1);
    unsetenv("BURIN_IMAGE");

    assert_int_equal(list.n, 3);
    assert_string_equal(list.at[0].path, "a.png");
    assert_string_equal(list.at[1].path, "b.mp4");
    assert_string_equal(list.at[2].path, "c.jpg");
    assert_true(!list.at[0].is_video && list.at[1].is_video && !list.at[2].is_video);
    assert_refused(BURIN_EVAL, "--image a.png", "--image is an option of `run`");
}

SPEC(fewer_than_60_options_each_with_a_line_of_help_that_fits_a_screen)
{
    const char *names, *help, *value;
    char shown[4096] = " ";
    unsigned commands;
    int n = 0;
    for (int i = 0; burin_settings_row(i, &names, &commands, &help, &value); i++) {
        char name[64];
        assert_true(commands != 0 && commands < 1u << BURIN_N_COMMANDS);
        assert_true(strlen(help) > 0);
        snprintf(name, sizeof name, " %s ", long_name(names));
        if (!*names || strstr(shown, name)) /* what is only accepted is not shown */
            continue;
        strcat(shown, name);
        n++;
    }
    assert_in_range(n, 20, 59);

    for (int command = 0; command < BURIN_N_COMMANDS; command++) {
        char text[8192];
        snprintf(text, sizeof text, "%s", help_of((enum burin_command)command));
        int n_lines = 0;
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), n_lines++)
            if (strlen(line) > 92)
                fail_msg("%s: %s", burin_command_names[command], line);
        assert_in_range(n_lines, 5, 40);
    }
}

SPEC(no_spelling_means_two_things_in_one_command)
{
    for (int command = 0; command < BURIN_N_COMMANDS; command++) {
        char seen[4096] = " ";
        const char *names, *help, *value;
        unsigned commands;
        for (int i = 0; burin_settings_row(i, &names, &commands, &help, &value); i++) {
            if (!(commands & (1u << command)))
                continue;
            char copy[256];
            snprintf(copy, sizeof copy, "%s", names);
            for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
                char padded[64];
                snprintf(padded, sizeof padded, " %s ", word);
                if (strstr(seen, padded))
                    fail_msg("%s twice in %s", word, burin_command_names[command]);
                strcat(seen, word);
                strcat(seen, " ");
            }
        }
    }
}

SPEC(edits_from_one_word_to_another)
{
    assert_int_equal(burin_edit_distance("", ""), 0);
    assert_int_equal(burin_edit_distance("kitten", "sitting"), 3);
    assert_int_equal(burin_edit_distance("", "abc"), 3);
}
