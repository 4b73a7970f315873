/* models/gemma4_chat.lua against Gemma 4's own templates and processor, and what its format says
 * of stops, thoughts and sampling. */
#include "runtime/text/chat.h"

#include "tests/runtime/text/tokenizers.h"

static const char golden_path[] = "tests/golden/text/gemma4_chats.json";

static struct burin_chat chat_of(const char *variant)
{
    static char *source;
    size_t length;
    if (!source) {
        source = read_text("models/gemma4_chat.lua", &length);
        source[length] = '\0';
    }
    return (struct burin_chat){ source, variant, "gemma4_chat.lua" };
}

/* Gemma's vocabulary, or NULL where it is not at hand (tests/support/gemma_vocab.py). */
static struct burin_tokenizer *gemma4(void)
{
    static const char path[] = "build/weights/gemma-vocab/tokenizer.json";
    static struct burin_tokenizer *tokenizer;
    struct burin_vocab vocab;
    if (!tokenizer && access(path, R_OK) == 0) {
        ASSERT_OK(burin_vocab_from_json_file(&vocab, path, &err));
        tokenizer = open_vocab(&vocab);
    }
    return tokenizer;
}

/* ---- The golden conversations ---------------------------------------------------------- */

enum { MOST_MESSAGES = 10, MOST_PARTS = 8, MOST_ITEMS = 8 };
struct conversation {
    struct burin_message messages[MOST_MESSAGES];
    struct burin_part parts[MOST_MESSAGES][MOST_PARTS];
    int n_soft[MOST_MESSAGES][MOST_PARTS][MOST_ITEMS];
    double seconds[MOST_MESSAGES][MOST_PARTS][MOST_ITEMS];
    char roles[MOST_MESSAGES][16];
    char names[MOST_MESSAGES][16];
    char call_ids[MOST_MESSAGES][16];
    int n;
    struct burin_chat_options options;
    struct burin_span e2b;
    struct burin_span large;
    int32_t ids[GOLDEN_IDS];
    size_t n_ids;
};

/* A value as it stands. */
static struct burin_span scan_raw(struct burin_json_scan *scan)
{
    burin_json_peek(scan);
    const char *begin = scan->at;
    ASSERT_OK(burin_json_skip(scan, &err));
    return (struct burin_span){ begin, (size_t)(scan->at - begin) };
}

static struct burin_span scan_text(struct burin_json_scan *scan)
{
    struct burin_span text;
    ASSERT_OK(burin_json_take_text(scan, &text, &err));
    return text;
}

static const char *scan_name(struct burin_json_scan *scan, char room[16])
{
    const struct burin_span text = scan_text(scan);
    snprintf(room, 16, "%.*s", (int)text.length, text.at);
    return room;
}

static bool more_of(struct burin_json_scan *scan)
{
    bool more;
    ASSERT_OK(burin_json_element(scan, &more, &err));
    return more;
}

static bool next_key(struct burin_json_scan *scan, struct burin_span *key)
{
    bool more;
    ASSERT_OK(burin_json_member(scan, key, &more, &err));
    return more;
}

static int scan_numbers(struct burin_json_scan *scan, double *numbers)
{
    int n = 0;
    ASSERT_OK(burin_json_enter(scan, '[', &err));
    for (; more_of(scan); n++) {
        assert_true(n < MOST_ITEMS);
        numbers[n] = strtod(scan_raw(scan).at, NULL);
    }
    return n;
}

static void scan_part(struct burin_json_scan *scan, struct conversation *c, int m, int p)
{
    struct burin_part *part = &c->parts[m][p];
    struct burin_span key;
    double n_soft[MOST_ITEMS];

    *part = (struct burin_part){ 0 };
    ASSERT_OK(burin_json_enter(scan, '{', &err));
    while (next_key(scan, &key)) {
        if (burin_span_is(key, "text")) {
            part->text = scan_text(scan);
        } else if (burin_span_is(key, "type")) {
            const struct burin_span type = scan_text(scan);
            part->kind = burin_span_is(type, "image")   ? BURIN_PART_IMAGE
                         : burin_span_is(type, "video") ? BURIN_PART_VIDEO
                         : burin_span_is(type, "audio") ? BURIN_PART_AUDIO
                                                        : BURIN_PART_TEXT;
        } else if (burin_span_is(key, "n_soft")) {
            part->n_items = scan_numbers(scan, n_soft);
            part->n_soft = c->n_soft[m][p];
            for (int i = 0; i < part->n_items; i++)
                c->n_soft[m][p][i] = (int)n_soft[i];
        } else {
            scan_numbers(scan, c->seconds[m][p]);
            part->seconds = c->seconds[m][p];
        }
    }
}

static void scan_message(struct burin_json_scan *scan, struct conversation *c, int m)
{
    struct burin_message *message = &c->messages[m];
    struct burin_span key;

    *message = (struct burin_message){ .parts = c->parts[m] };
    ASSERT_OK(burin_json_enter(scan, '{', &err));
    while (next_key(scan, &key)) {
        if (burin_span_is(key, "role")) {
            message->role = scan_name(scan, c->roles[m]);
        } else if (burin_span_is(key, "name")) {
            message->name = scan_name(scan, c->names[m]);
        } else if (burin_span_is(key, "tool_call_id")) {
            message->tool_call_id = scan_name(scan, c->call_ids[m]);
        } else if (burin_span_is(key, "reasoning")) {
            message->reasoning = scan_text(scan);
        } else if (burin_span_is(key, "tool_calls")) {
            message->tool_calls = scan_raw(scan);
        } else if (burin_json_peek(scan) == '"') {
            message->content = scan_text(scan);
        } else {
            ASSERT_OK(burin_json_enter(scan, '[', &err));
            for (; more_of(scan); message->n_parts++) {
                assert_true(message->n_parts < MOST_PARTS);
                scan_part(scan, c, m, message->n_parts);
            }
        }
    }
}

static bool next_conversation(struct burin_json_scan *scan, struct conversation *c)
{
    struct burin_span key;
    if (!more_of(scan))
        return false;
    c->n = 0;
    c->n_ids = 0;
    c->options = (struct burin_chat_options){ 0 };
    ASSERT_OK(burin_json_enter(scan, '{', &err));
    while (next_key(scan, &key)) {
        if (burin_span_is(key, "messages")) {
            ASSERT_OK(burin_json_enter(scan, '[', &err));
            for (; more_of(scan); c->n++) {
                assert_true(c->n < MOST_MESSAGES);
                scan_message(scan, c, c->n);
            }
        } else if (burin_span_is(key, "add_generation_prompt")) {
            c->options.add_generation_prompt = *scan_raw(scan).at == 't';
        } else if (burin_span_is(key, "thinking")) {
            c->options.thinking = *scan_raw(scan).at == 't';
        } else if (burin_span_is(key, "tools")) {
            c->options.tools = scan_raw(scan);
        } else if (burin_span_is(key, "e2b_ids")) {
            c->n_ids = scan_ids(scan, c->ids);
        } else if (burin_span_is(key, "e2b")) {
            c->e2b = scan_text(scan);
        } else {
            assert_true(burin_span_is(key, "31b"));
            c->large = scan_text(scan);
        }
    }
    return true;
}

static int for_each_conversation(void (*check)(const struct conversation *))
{
    static struct conversation conversation;
    struct burin_json_scan scan;
    size_t length;
    int n = 0;
    char *text = read_text(golden_path, &length);
    ASSERT_OK(burin_json_scan_begin(&scan, golden_path, text, length, &err));
    ASSERT_OK(burin_json_enter(&scan, '[', &err));
    for (; next_conversation(&scan, &conversation); n++)
        check(&conversation);
    free(text);
    return n;
}

struct pieces {
    struct burin_piece *at;
    int n;
};

static struct pieces render(
        const char *variant, const struct conversation *c, struct burin_arena *arena)
{
    const struct burin_chat chat = chat_of(variant);
    struct pieces pieces;
    ASSERT_OK(burin_chat_render(
            &chat, c->messages, c->n, c->options, arena, &pieces.at, &pieces.n, &err));
    return pieces;
}

/* As the template and the processor write them. */
static struct burin_span text_of(struct pieces pieces, struct burin_arena *arena)
{
    size_t length = 0;
    for (int i = 0; i < pieces.n; i++)
        length += pieces.at[i].text.length *
                  (size_t)(pieces.at[i].n_soft ? pieces.at[i].n_soft : 1);
    char *text = burin_arena_take(arena, length + 1, 1, 1);
    length = 0;
    for (int i = 0; i < pieces.n; i++)
        for (int k = 0; k < (pieces.at[i].n_soft ? pieces.at[i].n_soft : 1); k++) {
            memcpy(text + length, pieces.at[i].text.at, pieces.at[i].text.length);
            length += pieces.at[i].text.length;
        }
    return (struct burin_span){ text, length };
}

static void assert_renders(
        const struct conversation *c, const char *variant, struct burin_span wanted)
{
    struct burin_arena arena = { 0 };
    const struct burin_span text = text_of(render(variant, c, &arena), &arena);
    if (burin_span_compare(text, wanted) != 0)
        fail_msg(
                "%s:\n%s\ninstead of\n%.*s", variant, text.at, (int)wanted.length,
                wanted.at);
    burin_arena_close(&arena);
}

static void check_rendered(const struct conversation *c)
{
    assert_renders(c, "e2b", c->e2b);
    assert_renders(c, "e4b", c->e2b);
    assert_renders(c, "26b-a4b", c->large);
    assert_renders(c, "31b", c->large);
}

SPEC(conversations_are_the_bytes_that_the_models_templates_and_processor_write)
{
    assert_int_equal(for_each_conversation(check_rendered), 25);
}

/* ---- Soft tokens -------------------------------------------------------------------------- */

static const int one_picture[] = { 70 };
static const int two_frames[] = { 64, 66 };
static const double at_seconds[] = { 0, 61.5 };

static const struct burin_part picture = { .kind = BURIN_PART_IMAGE,
                                           .n_items = 1,
                                           .n_soft = one_picture };
static const struct burin_part clip = {
    .kind = BURIN_PART_VIDEO, .n_items = 2, .n_soft = two_frames, .seconds = at_seconds
};

static enum burin_status render_parts(
        const char *role,
        const struct burin_part *parts,
        int n_parts,
        struct burin_arena *arena,
        struct pieces *pieces)
{
    const struct burin_chat chat = chat_of("31b");
    const struct burin_message message = { .role = role,
                                           .parts = parts,
                                           .n_parts = n_parts };
    err = (struct burin_error){ 0 };
    return burin_chat_render(
            &chat, &message, 1, (struct burin_chat_options){ 0 }, arena, &pieces->at,
            &pieces->n, &err);
}

SPEC(items_are_numbered_over_pictures_and_frames_in_prompt_order)
{
    const struct burin_part parts[] = { picture, clip, picture };
    static const int wanted[] = { 70, 64, 66, 70 };
    struct burin_arena arena = { 0 };
    struct pieces pieces;
    int n = 0;
    assert_int_equal(render_parts("user", parts, 3, &arena, &pieces), BURIN_OK);
    for (int i = 0; i < pieces.n; i++) {
        if (!pieces.at[i].n_soft)
            continue;
        assert_int_equal(pieces.at[i].item, n);
        assert_int_equal(pieces.at[i].n_soft, wanted[n++]);
        assert_true(burin_span_is(pieces.at[i - 1].text, "<|image>"));
        assert_true(burin_span_is(pieces.at[i + 1].text, "<image|>"));
    }
    assert_int_equal(n, 4);
    burin_arena_close(&arena);
}

SPEC(a_picture_that_the_format_leaves_out_is_refused)
{
    struct burin_arena arena = { 0 };
    struct pieces pieces;
    assert_int_equal(render_parts("tool", &picture, 1, &arena, &pieces), BURIN_EFORMAT);
    assert_non_null(strstr(err.message, "1 of 1 pictures, frames or sounds"));
    assert_int_equal(render_parts("system", &picture, 1, &arena, &pieces), BURIN_EFORMAT);
    burin_arena_close(&arena);
}

SPEC(arguments_that_are_no_object_and_text_that_is_no_json_are_refused)
{
    static const char *const rows[][2] = {
        { "[{\"id\":\"1\",\"function\":{\"name\":\"now\",\"arguments\":\"{}\"}}]",
          "the arguments of tool call now are no JSON object" },
        { "[{\"id\":", "tool_calls of message 1" },
        { "[] x", "tool_calls of message 1" },
    };
    const struct burin_chat chat = chat_of("e2b");
    struct burin_arena arena = { 0 };
    struct pieces pieces;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct burin_message message = { .role = "assistant",
                                               .tool_calls = burin_span_of(rows[i][0]) };
        ASSERT_REFUSED(
                burin_chat_render(
                        &chat, &message, 1, (struct burin_chat_options){ 0 }, &arena,
                        &pieces.at, &pieces.n, &err),
                BURIN_EFORMAT, rows[i][1]);
    }
    burin_arena_close(&arena);
}

SPEC(a_format_without_a_place_for_pictures_refuses_them)
{
    size_t length;
    char *source = read_text("models/llama_chat.lua", &length);
    source[length] = '\0';
    const struct burin_chat chat = { source, "smollm2-135m", "llama_chat.lua" };
    const struct burin_message message = { .role = "user",
                                           .parts = &picture,
                                           .n_parts = 1 };
    struct burin_arena arena = { 0 };
    struct pieces pieces;
    ASSERT_REFUSED(
            burin_chat_render(
                    &chat, &message, 1, (struct burin_chat_options){ 0 }, &arena,
                    &pieces.at, &pieces.n, &err),
            BURIN_EMISMATCH, "smollm2-135m has no place for a part of type image");
    burin_arena_close(&arena);
    free(source);
}

/* ---- With a vocabulary ---------------------------------------------------------------------- */

static void check_encoded(const struct conversation *c)
{
    struct burin_arena arena = { 0 };
    struct burin_prompt prompt;
    const struct pieces pieces = render("e2b", c, &arena);
    ASSERT_OK(burin_chat_encode(gemma4(), pieces.at, pieces.n, &arena, &prompt, &err));
    if (c->n_ids)
        assert_ids(c->e2b, (struct ids){ prompt.ids, prompt.n_ids }, c->ids, c->n_ids);
    for (int i = 0; i < prompt.n_soft; i++) {
        const struct burin_soft soft = prompt.soft[i];
        assert_int_equal(soft.item, i);
        for (int k = 0; k < soft.n; k++)
            assert_true(prompt.ids[soft.at + (size_t)k] >= 258880);
        assert_true(prompt.ids[soft.at - 1] == 255999 || prompt.ids[soft.at - 1] == 256000);
    }
    burin_arena_close(&arena);
}

SPEC(conversations_have_the_references_ids_and_soft_tokens_their_places)
{
    if (!gemma4())
        skip();
    assert_int_equal(for_each_conversation(check_encoded), 25);
}

SPEC(the_format_says_what_ends_an_answer_what_is_thought_and_how_to_draw)
{
    const struct burin_chat chat = chat_of("26b-a4b");
    struct burin_chat_facts facts;
    if (!gemma4())
        skip();
    ASSERT_OK(burin_chat_facts(&chat, gemma4(), &facts, &err));
    assert_int_equal(facts.n_stops, 3);
    assert_int_equal(facts.stops[0], 106);
    assert_int_equal(facts.stops[1], 1);
    assert_int_equal(facts.stops[2], 50);
    assert_int_equal(facts.think_from, 100);
    assert_int_equal(facts.think_to, 101);
    assert_string_equal(facts.think_head, "thought\n");
    assert_true(facts.has_sampling);
    assert_float_equal(facts.temperature, 1, 0);
    assert_int_equal(facts.top_k, 64);
    assert_float_equal(facts.top_p, 0.95f, 0);
    close_tokenizer(gemma4());
}
