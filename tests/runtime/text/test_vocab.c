/* runtime/text/vocab.h: what is read from a tokenizer.json and from a GGUF file, and what is
 * refused by name. */
#include "tests/runtime/text/tokenizers.h"
#include "tests/runtime/weights/files.h"

/* ---- tokenizer.json ------------------------------------------------------------------ */

static struct burin_vocab vocab;

/* A tokenizer over "a" and "b" with one member other than usual; NULL leaves all as usual. */
static const char *json_with(const char *member, const char *value)
{
    static const char *const members[][2] = {
        { "added_tokens", "[{\"id\":3,\"content\":\"<s>\",\"special\":true}]" },
        { "normalizer", "null" },
        { "pre_tokenizer", "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}" },
        { "post_processor", "null" },
        { "decoder", "{\"type\":\"ByteLevel\"}" },
        { "type", "\"BPE\"" },
        { "vocab", "{\"a\":0,\"b\":1,\"ab\":2}" },
        { "merges", "[[\"a\",\"b\"]]" },
        { "unk_token", "null" },
        { "byte_fallback", "false" },
        { "continuing_subword_prefix", "null" },
        { "end_of_word_suffix", "\"\"" },
        { "dropout", "null" },
    };
    static char json[2048];
    size_t used = (size_t)sprintf(json, "{\"version\":\"1.0\"");
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const bool other = member && strcmp(member, members[i][0]) == 0;
        used += (size_t)sprintf(
                json + used, ",%s\"%s\":%s", i == 5 ? "\"model\":{\"x\":1," : "",
                members[i][0], other ? value : members[i][1]);
    }
    strcpy(json + used, "}}");
    return json;
}

static enum burin_status read_json(const char *json)
{
    err = (struct burin_error){ 0 };
    return burin_vocab_from_json(&vocab, span(json), &err);
}

SPEC(a_tokenizer_json_has_tokens_merges_and_added_tokens)
{
    ASSERT_OK(read_json(json_with(NULL, NULL)));
    assert_int_equal(vocab.n_tokens, 4);
    assert_int_equal(vocab.n_merges, 1);
    assert_int_equal(vocab.n_added, 1);
    assert_int_equal(vocab.tokens[2].kind, BURIN_TOKEN_NORMAL);
    assert_int_equal(vocab.tokens[3].kind, BURIN_TOKEN_SPECIAL);
    assert_true(burin_span_is(vocab.tokens[3].text, "<s>"));
    assert_int_equal(vocab.n_splits, 1);
    assert_false(vocab.nfc);
    assert_int_equal(vocab.n_prefix, 0);
    burin_vocab_close(&vocab);
}

SPEC(members_may_come_in_any_order)
{
    ASSERT_OK(read_json(
            "{\"model\":{\"merges\":[\"\\u0061 b\"],\"vocab\":{\"ab\":2,\"\\u0061\":0,"
            "\"b\":1}},\"decoder\":{\"x\":[],\"type\":\"ByteLevel\"},\"pre_tokenizer\":{"
            "\"use_regex\":false,\"add_prefix_space\":false,\"type\":\"ByteLevel\"}}"));
    assert_true(burin_span_is(vocab.tokens[0].text, "a"));
    assert_true(burin_span_is(vocab.merges[0].left, "a"));
    assert_true(burin_span_is(vocab.merges[0].right, "b"));
    assert_int_equal(vocab.n_splits, 0);
    burin_vocab_close(&vocab);
}

static void assert_json_refused(
        const char *member, const char *value, enum burin_status wanted, const char *reason)
{
    const enum burin_status status = read_json(json_with(member, value));
    if (status != wanted || !strstr(err.message, reason))
        fail_msg(
                "%s %s: status %d: \"%s\" lacks \"%s\"", member, value, (int)status,
                err.message, reason);
    assert_null(vocab.tokens);
    assert_int_equal(vocab.arena.obtained, 0);
}

SPEC(what_we_do_not_run_is_refused_by_its_name)
{
    static const char *const rows[][3] = {
        { "type", "\"Unigram\"", "model \"Unigram\" is not supported" },
        { "byte_fallback", "true", "byte_fallback" },
        { "continuing_subword_prefix", "\"##\"", "continuing_subword_prefix" },
        { "end_of_word_suffix", "\"</w>\"", "end_of_word_suffix" },
        { "dropout", "0.1", "dropout" },
        { "normalizer", "{\"type\":\"Lowercase\"}", "normalizer \"Lowercase\"" },
        { "normalizer",
          "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},"
          "{\"type\":\"Strip\"}]}",
          "normalizer \"Strip\"" },
        { "pre_tokenizer", "{\"type\":\"Metaspace\"}", "pre_tokenizer \"Metaspace\"" },
        { "pre_tokenizer", "{\"type\":\"ByteLevel\"}", "add_prefix_space" },
        { "pre_tokenizer", "{\"type\":\"Digits\"}", "no ByteLevel pre_tokenizer" },
        { "pre_tokenizer", "null", "no ByteLevel pre_tokenizer" },
        { "pre_tokenizer",
          "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},\"behavior\":\"Contiguous\"}",
          "Split with behavior \"Contiguous\"" },
        { "pre_tokenizer",
          "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"ByteLevel\","
          "\"add_prefix_space\":false},{\"type\":\"Digits\"}]}",
          "pre_tokenizer behind ByteLevel, \"Digits\"" },
        { "post_processor", "{\"type\":\"BertProcessing\"}", "post_processor" },
        { "post_processor",
          "{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\"}},"
          "{\"SpecialToken\":{\"id\":\"<s>\"}}],\"special_tokens\":{}}",
          "tokens behind the text" },
        { "decoder", "{\"type\":\"WordPiece\"}", "decoder \"WordPiece\"" },
        { "decoder", "null", "decoder \"null\"" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_json_refused(rows[i][0], rows[i][1], BURIN_EMISMATCH, rows[i][2]);
}

SPEC(what_makes_no_sense_is_refused_with_its_reason)
{
    static const char *const rows[][3] = {
        { "vocab", "{\"a\":0,\"b\":0}", "\"a\" and \"b\" have one id, 0" },
        { "vocab", "{\"a\":-1}", "JSON byte" },
        { "vocab", "{\"a\":1.5}", "JSON byte" },
        { "vocab", "{\"a\":4294967296}", "4294967296 is no id" },
        { "vocab", "null", "lacks vocab or merges" },
        { "merges", "null", "lacks vocab or merges" },
        { "merges", "[\"ab\"]", "merge \"ab\" is not two tokens" },
        { "merges", "[[\"a\",\"b\",\"c\"]]", "a merge of three" },
        { "merges", "[[\"a\"]]", "JSON byte" },
        { "merges", "[1]", "JSON byte" },
        { "unk_token", "\"<unk>\"", "unk_token \"<unk>\" is no token" },
        { "added_tokens", "[{\"id\":3}]", "added token 0 lacks id or content" },
        { "added_tokens", "[{\"id\":0,\"content\":\"x\"}]",
          "\"x\" has the id of \"a\", 0" },
        { "added_tokens", "[{\"id\":0,\"id\":0,\"content\":\"x\"}]", "id a second time" },
        { "post_processor",
          "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\"}}"
          "],"
          "\"special_tokens\":{\"<s>\":{\"ids\":[99]}}}",
          "post_processor adds id 99" },
        { "post_processor",
          "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\"}}"
          "],"
          "\"special_tokens\":{}}",
          "does not say what \"<s>\" is" },
        { "pre_tokenizer", "{\"type\":\"Split\",\"behavior\":\"Isolated\"}", "no pattern" },
        { "pre_tokenizer", "{\"type\":\"Sequence\"}", "lacks pretokenizers" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_json_refused(rows[i][0], rows[i][1], BURIN_EFORMAT, rows[i][2]);
}

SPEC(a_large_id_does_not_take_a_large_list)
{
    assert_json_refused(
            "vocab", "{\"a\":2000000000}", BURIN_ELIMIT,
            "an id is 2000000000, but there are 1 tokens");
    assert_json_refused(
            "added_tokens", "[{\"id\":1000000,\"content\":\"x\"}]", BURIN_ELIMIT,
            "an id is 1000000");
}

SPEC(text_that_is_no_json_is_refused_wherever_it_ends)
{
    char json[2048];
    strcpy(json, json_with(NULL, NULL));
    const size_t length = strlen(json);
    for (size_t n = 0; n < length; n++) {
        err = (struct burin_error){ 0 };
        assert_int_equal(
                burin_vocab_from_json(&vocab, (struct burin_span){ json, n }, &err),
                BURIN_EFORMAT);
        assert_non_null(strstr(err.message, "tokenizer.json"));
    }
    strcpy(json + length, " x");
    assert_int_equal(read_json(json), BURIN_EFORMAT);
}

SPEC(a_template_before_the_text_is_the_prefix)
{
    ASSERT_OK(read_json(json_with(
            "post_processor",
            "{\"type\":\"Sequence\",\"processors\":[{\"type\":\"ByteLevel\"},"
            "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>"
            "\"}},"
            "{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{\"<s>\":{\"ids\":[3]}}}]"
            "}")));
    assert_int_equal(vocab.n_prefix, 1);
    assert_int_equal(vocab.prefix[0], 3);
    burin_vocab_close(&vocab);
}

SPEC(a_file_that_is_not_there_is_missing)
{
    ASSERT_REFUSED(
            burin_vocab_from_json_file(&vocab, "no/such/tokenizer.json", &err),
            BURIN_EMISSING, "no/such/tokenizer.json");
}

SPEC(a_merge_of_what_is_no_token_is_refused_when_the_tokenizer_opens)
{
    static _Alignas(64) char memory[256 * 1024];
    struct burin_tokenizer *tokenizer;
    size_t bytes = 0;
    ASSERT_OK(read_json(json_with("merges", "[[\"a\",\"b\"],[\"b\",\"a\"]]")));
    ASSERT_OK(burin_tokenizer_plan(&vocab, &bytes, &err));
    assert_true(bytes <= sizeof memory);
    ASSERT_REFUSED(
            burin_tokenizer_open(&tokenizer, &vocab, memory, bytes, &err), BURIN_EFORMAT,
            "merge 1 joins \"b\" and \"a\", but what it makes is no token");
    burin_vocab_close(&vocab);
}

SPEC(an_added_token_that_is_also_another_token_is_refused_when_the_tokenizer_opens)
{
    static _Alignas(64) char memory[256 * 1024];
    struct burin_tokenizer *tokenizer;
    size_t bytes = 0;
    ASSERT_OK(read_json(json_with("added_tokens", "[{\"id\":3,\"content\":\"ab\"}]")));
    ASSERT_OK(burin_tokenizer_plan(&vocab, &bytes, &err));
    ASSERT_REFUSED(
            burin_tokenizer_open(&tokenizer, &vocab, memory, bytes, &err), BURIN_EFORMAT,
            "added token \"ab\" has id 3, but it is token 2");
    burin_vocab_close(&vocab);
}

SPEC(a_pattern_that_we_would_read_otherwise_is_refused_when_the_tokenizer_opens)
{
    static _Alignas(64) char memory[256 * 1024];
    struct burin_tokenizer *tokenizer;
    size_t bytes = 0;
    ASSERT_OK(read_json(json_with(
            "pre_tokenizer",
            "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":"
            "{\"Regex\":\"\\\\w+\"},\"behavior\":\"Isolated\"},{\"type\":\"ByteLevel\","
            "\"add_prefix_space\":false}]}")));
    ASSERT_OK(burin_tokenizer_plan(&vocab, &bytes, &err));
    ASSERT_REFUSED(
            burin_tokenizer_open(&tokenizer, &vocab, memory, bytes, &err), BURIN_EMISMATCH,
            "this escape is not supported");
    burin_vocab_close(&vocab);
}

/* ---- SentencePiece -------------------------------------------------------------------- */

#define REPLACE(a, b)                                                                      \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"" a "\"},\"content\":\"" b "\"}"
#define SIGN "\xE2\x96\x81" /* U+2581 */

/* Pieces "a", "b", "ab", a space, " a", the bytes of "é", and <unk>. */
static const char *pieces_with(const char *normalizer, const char *pre, const char *decoder)
{
    static char json[2048];
    sprintf(json,
            "{\"normalizer\":%s,\"pre_tokenizer\":%s,\"decoder\":%s,\"added_tokens\":"
            "[{\"id\":8,\"content\":\"a" SIGN "b\",\"normalized\":true},"
            "{\"id\":9,\"content\":\"<s>\",\"special\":true}],"
            "\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"fuse_unk\":true,"
            "\"unk_token\":\"<unk>\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"" SIGN
            "\":3,\"" SIGN "a\":4,\"<0xC3>\":5,\"<0xA9>\":6,\"<unk>\":7},"
            "\"merges\":[[\"" SIGN "\",\"a\"],[\"a\",\"b\"]]}}",
            normalizer, pre, decoder);
    return json;
}

#define PIECES_DECODER                                                                     \
    "{\"type\":\"Sequence\",\"decoders\":[" REPLACE(                                       \
            SIGN, " ") ",{\"type\":\"ByteFallback\"},"                                     \
                       "{\"type\":\"Fuse\"}]}"

SPEC(a_space_is_its_sign_and_an_unknown_character_its_bytes)
{
    static const struct {
        const char *text;
        int32_t ids[8];
        size_t n;
        const char *back;
    } rows[] = {
        { "ab", { 2 }, 1, "ab" },
        { " ab", { 4, 1 }, 2, " ab" },
        { "b" SIGN "a", { 1, 4 }, 2, "b a" },
        { "\xC3\xA9", { 5, 6 }, 2, "\xC3\xA9" },
        /* no bytes for these: one unknown for both, behind the bytes that follow it */
        { "zz\xC3\xA9"
          "a",
          { 5, 6, 7, 0 },
          4,
          "\xC3\xA9<unk>a" },
        { "<0xC3>", { 7 }, 1, "<unk>" },
        { "ba b", { 1, 8 }, 2, "ba b" },
        { "<s>", { 7 }, 1, "<unk>" },
    };
    struct burin_arena arena = { 0 };
    ASSERT_OK(read_json(pieces_with(REPLACE(" ", SIGN), "null", PIECES_DECODER)));
    struct burin_tokenizer *tokenizer = open_vocab(&vocab);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct burin_span back;
        const struct ids ids = encode(tokenizer, span(rows[i].text), BURIN_PLAIN, &arena);
        assert_ids(span(rows[i].text), ids, rows[i].ids, rows[i].n);
        ASSERT_OK(burin_decode(tokenizer, ids.at, ids.n, true, &arena, &back, &err));
        assert_string_equal(back.at, rows[i].back);
    }
    burin_arena_close(&arena);
    close_tokenizer(tokenizer);
}

SPEC(a_split_at_spaces_that_are_no_more_is_none_and_any_other_is_refused)
{
#define SPLIT(at, behavior)                                                                \
    "{\"type\":\"Split\",\"pattern\":{\"String\":\"" at "\"},\"behavior\":\"" behavior "\"}"
    ASSERT_OK(read_json(pieces_with(
            REPLACE(" ", SIGN), SPLIT(" ", "MergedWithPrevious"), PIECES_DECODER)));
    assert_int_equal(vocab.n_splits, 0);
    burin_vocab_close(&vocab);

    static const char *const rows[][4] = {
        { REPLACE(" ", SIGN), SPLIT("x", "Isolated"), PIECES_DECODER, "Split of \"x\"" },
        { REPLACE("x", SIGN), "null", PIECES_DECODER, "normalizer Replace of \"x\"" },
        { REPLACE(" ", SIGN), "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}",
          PIECES_DECODER, "behind Replace" },
        { REPLACE(" ", SIGN), "null", "{\"type\":\"ByteLevel\"}", "decoder \"ByteLevel\"" },
        { REPLACE(" ", SIGN), "null", REPLACE("x", " "), "decoder Replace of \"x\"" },
        { "{\"type\":\"Prepend\",\"prepend\":\"" SIGN "\"}", "null", PIECES_DECODER,
          "normalizer \"Prepend\"" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ASSERT_REFUSED(
                read_json(pieces_with(rows[i][0], rows[i][1], rows[i][2])), BURIN_EMISMATCH,
                rows[i][3]);
}

/* ---- GGUF --------------------------------------------------------------------------------- */

struct gguf_case {
    const char *model;
    const char *pre;
    const char *tokens[6];
    uint32_t types[6];
    uint32_t n_types;
    const char *merges[3];
    int add_bos; /* -1: the key is absent */
    int add_eos;
    uint32_t bos;
};

static struct gguf_case usual(void)
{
    return (struct gguf_case){
        .model = "gpt2",
        .pre = "smollm",
        .tokens = { "a", "b", "ab", "<s>", "<think>" },
        .types = { 1, 1, 1, 3, 4 },
        .n_types = 5,
        .merges = { "a b" },
        .add_bos = -1,
        .bos = 3,
    };
}

static void add_key(struct bytes *b, const char *key, uint32_t type)
{
    add_text(b, key);
    add_u32(b, type);
}

static void add_texts(struct bytes *b, const char *key, const char *const *texts)
{
    uint64_t n = 0;
    while (texts[n])
        n++;
    add_key(b, key, BURIN_GGUF_ARRAY);
    add_u32(b, BURIN_GGUF_TEXT);
    add_u64(b, n);
    for (uint64_t i = 0; i < n; i++)
        add_text(b, texts[i]);
}

static void add_flag(struct bytes *b, const char *key, int value)
{
    const unsigned char byte = (unsigned char)value;
    add_key(b, key, BURIN_GGUF_BOOL);
    add(b, &byte, 1);
}

/* Reads it as a file; the vocab's texts are gone with the gguf, so `check` looks first. */
static enum burin_status read_gguf(const struct gguf_case *c, void (*check)(void))
{
    static struct bytes b;
    struct burin_gguf gguf;
    gguf_begin(&b, 0, 7 + (c->add_bos >= 0));
    add_key(&b, "tokenizer.ggml.model", BURIN_GGUF_TEXT);
    add_text(&b, c->model);
    add_key(&b, "tokenizer.ggml.pre", BURIN_GGUF_TEXT);
    add_text(&b, c->pre);
    add_texts(&b, "tokenizer.ggml.tokens", c->tokens);
    add_key(&b, "tokenizer.ggml.token_type", BURIN_GGUF_ARRAY);
    add_u32(&b, BURIN_GGUF_I32);
    add_u64(&b, c->n_types);
    for (uint32_t i = 0; i < c->n_types; i++)
        add_u32(&b, c->types[i]);
    add_texts(&b, "tokenizer.ggml.merges", c->merges);
    add_flag(&b, "tokenizer.ggml.add_eos_token", c->add_eos);
    add_key(&b, "tokenizer.ggml.bos_token_id", BURIN_GGUF_U32);
    add_u32(&b, c->bos);
    if (c->add_bos >= 0)
        add_flag(&b, "tokenizer.ggml.add_bos_token", c->add_bos);
    pad_to(&b, 32);

    ASSERT_OK(burin_gguf_open(&gguf, write_file("v.gguf", b.at, b.used), &err));
    err = (struct burin_error){ 0 };
    const enum burin_status status = burin_vocab_from_gguf(&vocab, &gguf, &err);
    if (!status && check)
        check();
    burin_vocab_close(&vocab);
    burin_gguf_close(&gguf);
    return status;
}

static void check_usual(void)
{
    assert_int_equal(vocab.n_tokens, 5);
    assert_int_equal(vocab.n_added, 2);
    assert_true(vocab.added[0].special);
    assert_false(vocab.added[1].special);
    assert_int_equal(vocab.n_splits, 2);
    assert_int_equal(vocab.splits[0].kind, BURIN_SPLIT_DIGIT);
    assert_true(burin_span_is(vocab.merges[0].right, "b"));
    assert_int_equal(vocab.n_prefix, 0);
    assert_int_equal(vocab.eos, -1);
}

static void check_llama(void)
{
    assert_true(vocab.ignore_merges);
    assert_false(vocab.nfc);
    assert_int_equal(vocab.n_splits, 1);
    assert_int_equal(vocab.n_prefix, 1);
    assert_int_equal(vocab.prefix[0], 3);
}

static void check_qwen(void)
{
    assert_true(vocab.nfc);
    assert_false(vocab.ignore_merges);
    assert_int_equal(vocab.n_prefix, 0);
}

SPEC(a_gguf_file_names_its_steps)
{
    struct gguf_case c = usual();
    ASSERT_OK(read_gguf(&c, check_usual));
    c.pre = "llama-bpe";
    ASSERT_OK(read_gguf(&c, check_llama));
    c.pre = "qwen2";
    ASSERT_OK(read_gguf(&c, check_qwen));
    c.add_bos = 1;
    c.pre = "llama-bpe";
    ASSERT_OK(read_gguf(&c, check_llama));
}

static void assert_gguf_refused(
        const struct gguf_case *c, enum burin_status wanted, const char *reason)
{
    ASSERT_REFUSED(read_gguf(c, NULL), wanted, reason);
    assert_int_equal(vocab.arena.obtained, 0);
}

SPEC(a_name_that_is_not_known_is_refused_and_never_guessed)
{
    struct gguf_case c = usual();
    c.pre = "default";
    assert_gguf_refused(
            &c, BURIN_EMISMATCH, "splits text as \"default\" says (tokenizer.ggml.pre)");
    assert_non_null(strstr(err.message, "known are gpt-2, smollm"));
    c = usual();
    c.model = "bert";
    assert_gguf_refused(&c, BURIN_EMISMATCH, "the tokenizer is \"bert\"");
    c.model = "llama";
    assert_gguf_refused(
            &c, BURIN_EMISMATCH, "adds a space (tokenizer.ggml.add_space_prefix)");
}

SPEC(a_gguf_vocabulary_that_makes_no_sense_is_refused)
{
    struct gguf_case c = usual();
    c.n_types = 4;
    assert_gguf_refused(&c, BURIN_EFORMAT, "5 tokens and 4 token types");
    c = usual();
    c.types[1] = 6;
    assert_gguf_refused(&c, BURIN_EFORMAT, "token 1 is a byte, but called \"b\"");
    c.types[1] = 7;
    assert_gguf_refused(&c, BURIN_EMISMATCH, "token 1 is of type 7");
    c = usual();
    c.tokens[2] = "a\xFF";
    assert_gguf_refused(&c, BURIN_EFORMAT, "token 2 is not UTF-8");
    c = usual();
    c.merges[0] = "ab";
    assert_gguf_refused(&c, BURIN_EFORMAT, "merge 0 is not two tokens and a space: \"ab\"");
    c.merges[0] = "a b c";
    assert_gguf_refused(&c, BURIN_EFORMAT, "merge 0 is not");
    c = usual();
    c.add_eos = 1;
    assert_gguf_refused(&c, BURIN_EMISMATCH, "adds an end token");
    c = usual();
    c.bos = 5;
    assert_gguf_refused(&c, BURIN_EFORMAT, "bos_token_id is 5, but there are 5 tokens");
}
