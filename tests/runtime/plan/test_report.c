#include "runtime/plan/against.h"
#include "runtime/plan/report.h"
#include "runtime/plan/shape.h"
#include "tests/runtime/plan/gpu.h"

#include <ctype.h>

enum { TEXT = 1 << 16 };
static char text[TEXT];

static struct burin_plan a_plan(int64_t bytes)
{
    struct burin_plan_request request = gpu_request(bytes);
    request.n_draft = 2;
    request.n_frames = 3;
    return gpu_plan(&request);
}

static const char *written(
        const struct burin_plan *plan, void write(const struct burin_plan *, FILE *))
{
    memset(text, 0, sizeof text);
    FILE *out = fmemopen(text, sizeof text - 1, "w");
    write(plan, out);
    fclose(out);
    return text;
}

static void assert_in_text(const char *piece)
{
    if (!strstr(text, piece))
        fail_msg("%s is not in\n%s", piece, text);
}

SPEC(the_report_says_what_each_graph_costs_and_what_it_saves)
{
    const struct burin_plan plan = a_plan(4 * GIB);
    written(&plan, burin_plan_report);
    assert_in_text("context          555 MiB       581,959,680  assumed");
    assert_in_text("weights          118 MiB       123,731,969  derived");
    assert_in_text("without its graph");
    assert_in_text("padded to 2, 50 % unused");
    assert_in_text("step of 2,048 tokens: arena 1.25 MiB throughout + the larger of body "
                   "6.00 MiB, "
                   "head 12.0 MiB; its largest pieces");
    assert_in_text("encode_image of 1,120 soft tokens: arena 148 MiB; its largest pieces");
    assert_in_text(
            "buffer ff                   (10080, 3072) bf16           61,931,520 bytes");
    assert_in_text(
            "input  pixels               (10080, 768) u8              7,741,440 bytes");
    assert_in_text("KV: 2");
    assert_in_text("655,360 bytes a sequence: the newest 512 tokens of 1 layers");
    assert_in_text("300,000 bytes a sequence: what 1 recurrent layers carry on");
    assert_in_text("602,560 bytes a sequence: more of these for 2 drafted tokens");
    assert_in_text("It fits under what is assumed, with");
    assert_in_text("pictures     1 at once (--images), of 70 to 1,120 tokens each");
    assert_in_text("video        3 frames at once (--video-frames), of 70 tokens each");
    assert_in_text("program encode_audio: not in this plan (--audio-clips)\n");
}

SPEC(what_was_told_stands_beside_what_is_derived)
{
    struct burin_plan_request request = gpu_request(4 * GIB);
    request.n_sequences = 1;
    request.fixed_given = true;
    request.fixed_bytes = MIB;
    request.graphs_given = true;
    request.graphs_bytes = GIB;
    const struct burin_plan plan = gpu_plan(&request);
    written(&plan, burin_plan_report);
    assert_in_text(
            "fixed           1.00 MiB         1,048,576  assumed   all but graphs, states "
            "and KV, as --assume tells; derived: 1.16 GiB, which is more\n");
    assert_in_text("as --assume tells; derived: 7.00 MiB\n");
    written(&plan, burin_plan_json);
    assert_in_text("{\"owner\": \"graphs\", \"bytes\": 1073741824, \"kind\": \"assumed\", "
                   "\"derived_bytes\": 7340032}");
}

SPEC(graphs_that_were_asked_for_of_a_program_that_is_not_planned_are_told)
{
    struct burin_plan_request request = gpu_request(4 * GIB);
    request.graphs = graphs_of("encode_audio=25,50");
    request.graphs.named[1] = request.graphs.named[0];
    const struct burin_plan plan = gpu_plan(&request);
    written(&plan, burin_plan_report);
    assert_in_text(
            "program encode_audio: not in this plan (--audio-clips), so its --graphs do "
            "nothing\n");
    assert_in_text("program draft: not in this plan (--draft)\n");
}

SPEC(a_card_that_is_newer_than_all_that_are_known_is_planned_with_a_remark)
{
    struct burin_plan_request request = gpu_request(4 * GIB);
    request.card.sm = 130;
    const struct burin_plan plan = gpu_plan(&request);
    written(&plan, burin_plan_report);
    assert_in_text(
            "family       sm120: kernels for 12.0 and above; no card as new as this is "
            "known, nor whether they run on it\n");
}

SPEC(graphs_above_their_share_are_refused_in_the_report_and_the_picture_too)
{
    struct burin_program programs[4];
    struct burin_family family = vision_families[0];
    memcpy(programs, vision_programs, sizeof programs);
    programs[0].graph.kernel_nodes = 20000;
    family.programs = programs;
    struct burin_plan_request request = gpu_request(4 * GIB);
    request.family = &family;
    request.n_sequences = 1;
    const struct burin_plan plan = gpu_plan(&request);
    written(&plan, burin_plan_report);
    assert_in_text("It does not fit: graphs too large by 231 MiB (242,286,592 bytes).");
    assert_in_text(
            "6 graphs would take 1.23 GiB, more than a quarter of card. The largest: step "
            "n = 1 1.22 GiB,");
    written(&plan, burin_plan_json);
    assert_in_text("\"fits\": false");
    written(&plan, burin_plan_svg);
    assert_in_text("refused: its graphs are 231 MiB above a quarter of the card");
}

SPEC(what_a_start_would_refuse_for_want_of_kernels_is_said)
{
    static burin_enqueue *const first[] = { enqueue_nothing, NULL };
    struct burin_plan_request request = gpu_request(4 * GIB);
    struct burin_family family = vision_families[0];
    struct burin_program programs[4];
    memcpy(programs, vision_programs, sizeof programs);
    programs[0].enqueue = first;
    family.programs = programs;
    request.family = &family;

    struct burin_plan plan = gpu_plan(&request);
    assert_null(strstr(written(&plan, burin_plan_report), "planned only"));
    written(&plan, burin_plan_json);
    assert_in_text("\"planned_only\": [],");

    request.kv_dtype_given = true;
    request.kv_dtype = BURIN_FP8;
    programs[2].missing = "far_sight";
    plan = gpu_plan(&request);
    written(&plan, burin_plan_report);
    assert_in_text(
            "  planned only step: no kernels yet for keys and values in fp8: a start "
            "refuses (--kv-cache-dtype)\n");
    assert_in_text("  planned only encode_image: no kernels yet for far_sight\n");
    written(&plan, burin_plan_json);
    assert_in_text("\"planned_only\": [\n    \"step\",\n    \"encode_image\"\n  ],");
}

SPEC(the_json_of_a_GPU_has_graphs_in_programs_and_the_rest_apart)
{
    const struct burin_plan plan = a_plan(4 * GIB);
    written(&plan, burin_plan_json);
    assert_in_text("\"family\": \"sm120\"");
    assert_in_text("\"sm\": 120");
    assert_in_text("{\"program\": \"encode_image\", \"n\": 70, \"input_bytes\": 484160, "
                   "\"arena_bytes\": 9676800, \"kernel_nodes\": 16, \"copy_nodes\": 0, "
                   "\"driver_bytes\": 1048576, \"without\": 140}");
    assert_in_text("\"eager\": [");
    assert_in_text("{\"program\": \"step\", \"n\": 2048");
    assert_in_text("\"bytes_per_token\": 1920");
    assert_in_text("\"bytes_per_sequence\": 1557920");
    assert_in_text("\"draft_bytes\": 602560");
    assert_in_text("{\"owner\": \"graphs\", \"bytes\": ");
    assert_in_text("\"fits\": true");
}

SPEC(a_plan_against_itself_has_not_changed_and_against_another_says_what)
{
    static struct burin_plan_facts before, after;
    const struct burin_plan small = a_plan(3 * GIB), large = a_plan(4 * GIB);
    written(&small, burin_plan_json);
    assert_int_equal(
            burin_plan_facts_read(&before, "small", text, strlen(text), NULL), BURIN_OK);
    memset(text, 0, sizeof text);
    FILE *out = fmemopen(text, sizeof text - 1, "w");
    burin_plan_facts_compare(&before, &before, out);
    fclose(out);
    assert_string_equal(text, "Nothing changed.\n");

    written(&large, burin_plan_json);
    assert_int_equal(
            burin_plan_facts_read(&after, "large", text, strlen(text), NULL), BURIN_OK);
    memset(text, 0, sizeof text);
    out = fmemopen(text, sizeof text - 1, "w");
    burin_plan_facts_compare(&before, &after, out);
    fclose(out);
    assert_in_text(
            "  limit_bytes                                 3.00 GiB  ->        4.00 GiB   "
            "+1,073,741,824");
    assert_in_text("  owner kv ");
    assert_null(strstr(text, "owner weights"));
}

SPEC(a_graph_that_is_new_or_gone_is_a_line)
{
    static struct burin_plan_facts before, after;
    struct burin_plan_request request = gpu_request(4 * GIB);
    request.graphs = graphs_of("step=1,2");
    struct burin_plan plan = gpu_plan(&request);
    written(&plan, burin_plan_json);
    burin_plan_facts_read(&before, "before", text, strlen(text), NULL);
    request.graphs = graphs_of("step=1,4");
    plan = gpu_plan(&request);
    written(&plan, burin_plan_json);
    burin_plan_facts_read(&after, "after", text, strlen(text), NULL);
    memset(text, 0, sizeof text);
    FILE *out = fmemopen(text, sizeof text - 1, "w");
    burin_plan_facts_compare(&before, &after, out);
    fclose(out);

    int n = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        n += strstr(line, "graph step 2 ") || strstr(line, "graph step 4 ");
    assert_int_equal(n, 2);
}

SPEC(what_is_no_plan_s_JSON_is_refused)
{
    static struct burin_plan_facts facts;
    static const char *const wrong[] = { "",
                                         "[]",
                                         "{}",
                                         "{\"model\": 1}",
                                         "{",
                                         "null",
                                         "{\"a\":}",
                                         "{\"total_bytes\": -1}",
                                         "{\"model\": \"x\", \"total_bytes\": 1} x" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char copy[64];
        snprintf(copy, sizeof copy, "%s", wrong[i]);
        assert_int_not_equal(
                burin_plan_facts_read(&facts, "x", copy, strlen(copy), NULL), BURIN_OK);
    }
}

static enum burin_status explained(
        const struct burin_plan *plan, const char *name, struct burin_error *err)
{
    memset(text, 0, sizeof text);
    FILE *out = fmemopen(text, sizeof text - 1, "w");
    const enum burin_status status = burin_plan_explain(plan, name, out, err);
    fclose(out);
    return status;
}

SPEC(a_buffer_is_explained_by_its_line_its_growth_and_what_shares_its_bytes)
{
    const struct burin_plan plan = a_plan(4 * GIB);
    assert_int_equal(explained(&plan, "qkv", NULL), BURIN_OK);
    assert_in_text("qkv   a buffer of step, made by models/vision.lua:8");
    assert_in_text("shape    (tokens, D_MODEL + 2 * D_KV), here (2048, 512) bf16");
    assert_in_text("grows    1,024 bytes for each of the tokens: 2,097,152 bytes at 2,048");
    assert_in_text("lives    from operation 1 to operation 3, in body");
    assert_in_text("which at other times hold\n             h ");
    assert_null(strstr(text, "  x "));

    assert_int_equal(explained(&plan, "x", NULL), BURIN_OK);
    assert_in_text("lives    from operation 0 to operation 9, in all phases\n");
    assert_in_text("which nothing else uses");
}

SPEC(inputs_and_states_are_explained_too)
{
    const struct burin_plan plan = a_plan(4 * GIB);
    assert_int_equal(explained(&plan, "token_ids", NULL), BURIN_OK);
    assert_in_text("token_ids   an input of step");
    assert_in_text("token_ids   an input of draft");
    assert_int_equal(explained(&plan, "soft_rows", NULL), BURIN_OK);
    assert_in_text("the encoder cache, of its own");
    assert_int_equal(explained(&plan, "kv", NULL), BURIN_OK);
    assert_in_text("layers.1  a window a sequence of 512 tokens");
    assert_in_text("mtp.0  in pages");
}

SPEC(a_name_that_nothing_has_is_told_of_those_there_are)
{
    const struct burin_plan plan = a_plan(4 * GIB);
    struct burin_error err;
    assert_int_equal(explained(&plan, "nothing", &err), BURIN_EUSAGE);
    assert_non_null(strstr(err.message, "step: token_ids page_table soft_rows x qkv h"));
    assert_non_null(strstr(err.message, "encode_audio (not in this plan):"));
}

SPEC(a_buffer_of_a_program_that_is_not_planned_is_told_of_the_option_that_plans_it)
{
    struct burin_plan_request request = gpu_request(4 * GIB);
    request.images_given = true;
    const struct burin_plan plan = gpu_plan(&request);
    struct burin_error err;
    assert_int_equal(explained(&plan, "ff", &err), BURIN_EUSAGE);
    assert_string_equal(
            err.message, "--explain ff: encode_image has it, which is not in this plan "
                         "(--images, --video-frames)");
}

SPEC(a_file_that_says_too_much_is_named)
{
    static struct burin_plan_facts facts;
    static char many[1 << 15];
    struct burin_error err;
    char *at = many + sprintf(many, "{\"model\": 1");
    for (int i = 0; i < 1100; i++)
        at += sprintf(at, ", \"a%d\": 1", i);
    strcpy(at, "}");
    assert_int_equal(
            burin_plan_facts_read(&facts, "big.json", many, strlen(many), &err),
            BURIN_EFORMAT);
    assert_string_equal(err.message, "big.json is no plan: it says more than 1024 things");
}

SPEC(a_shape_in_numbers_and_as_it_is_where_it_says_something_unknown)
{
    static const struct burin_params params = { .value = { [BURIN_MAX_SOFT] = 77 } };
    static const int n[BURIN_N_EXTENTS] = { [BURIN_TOKENS] = 10, [BURIN_SOFT] = 3 };
    static const struct {
        const char *shape, *numbers;
    } cases[] = {
        { "(tokens, D_MODEL)", "(10, 320)" },
        { "(9 * soft, d_ff)", "(27, 1536)" },
        { "(tokens + 1)", "(11)" },
        { "(max_soft, 2 * (D_KV + 4))", "(77, 200)" },
        { "(D_FF - D_MODEL - 16, 3)", "(1200, 3)" },
        { "(tokens, UNKNOWN)", "(tokens, UNKNOWN)" },
        { "(tokens", "(tokens" },
        { "tokens)", "tokens)" },
        { "()", "()" },
        { "", "" },
        { "((((((((((((1))))))))))))", "((((((((((((1))))))))))))" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char numbers[64];
        burin_shape_numbers(
                cases[i].shape, &vision_model, &params, n, numbers, sizeof numbers);
        assert_string_equal(numbers, cases[i].numbers);
    }
}

/* ---- The picture ----------------------------------------------------------------------------- */

/* The number behind `key` at `*at`, which moves on; false at the end. */
static bool next_number(const char **at, const char *key, double *number)
{
    const char *found = strstr(*at, key);
    if (!found)
        return false;
    *number = strtod(found + strlen(key), NULL);
    *at = found + strlen(key);
    return true;
}

SPEC(the_picture_has_a_part_an_owner_their_heights_are_the_card_and_no_labels_meet)
{
    for (int64_t bytes = GIB; bytes < 20 * GIB; bytes += GIB + 77 * MIB) {
        const struct burin_plan plan = a_plan(bytes);
        const char *svg = written(&plan, burin_plan_svg);
        const char *at = strstr(svg, "</defs>"), *bar = at;
        double y, last = 0, height, sum = 0;
        assert_int_equal(strncmp(svg, "<svg xmlns=", 11), 0);
        assert_string_equal(svg + strlen(svg) - 7, "</svg>\n");

        int n_labels = 0;
        while (next_number(&at, "<text x=\"330.0\" y=\"", &y)) {
            assert_true(y - last >= 12); /* a line of 11 pixels below one of 14 */
            last = y;
            n_labels++;
        }
        int n_parts = 0;
        while ((bar = strstr(bar, "stroke=\"#ffffff\" stroke-width=\"0.5\""))) {
            const char *begin = bar;
            while (begin > svg && strncmp(begin, "<rect", 5) != 0)
                begin--;
            assert_true(next_number(&begin, "height=\"", &height));
            sum += height;
            n_parts++;
            bar++;
        }
        assert_int_equal(n_labels, 2 * n_parts);
        assert_true(n_parts >= plan.n_owners);
        const char *frame = strstr(svg, "fill=\"none\" stroke=\"#444444\"");
        while (strncmp(frame, "<rect", 5) != 0)
            frame--;
        assert_true(next_number(&frame, "height=\"", &height));
        assert_true(sum > height - 0.5 && sum < height + 0.5);
        assert_true(last < 96 + height); /* labels end where the bar does */
    }
}

/* As wide as a line of text gets: bold 0.7 of its size a letter, plain 0.62. */
SPEC(no_line_of_the_picture_is_cut_at_its_right_edge_and_the_bar_says_what_it_is)
{
    for (int i = 0; i < 3; i++) {
        struct burin_plan_request request = gpu_request(i == 1 ? GIB : 4 * GIB);
        snprintf(
                request.card.name, sizeof request.card.name, "%s",
                "1234567890.123456789GiB,sm_120");
        request.n_sequences = 1;
        request.n_draft = 1;
        request.fixed_given = i == 2;
        request.fixed_bytes = GIB;
        const struct burin_plan plan = gpu_plan(&request);
        const char *at = written(&plan, burin_plan_svg);
        assert_in_text(
                plan.fits ? "may be used; the bar is the card, 4.00 GiB"
                          : "may be used; the bar is not the card but what is needed, ");
        assert_null(strstr(text, "1 sequences"));
        assert_in_text("assumed: the worst known, or told by --assume");
        double x, size;
        while (next_number(&at, "<text x=\"", &x) &&
               next_number(&at, "font-size=\"", &size)) {
            const char *begin = strchr(at, '>') + 1;
            const bool bold = strstr(at, "bold") && strstr(at, "bold") < begin;
            const double width =
                    (double)(strchr(begin, '<') - begin) * size * (bold ? 0.7 : 0.62);
            if (x + width > 760)
                fail_msg("%.60s", begin);
        }
    }
}
