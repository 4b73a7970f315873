/* runtime/text/tokenizer.h, on a small vocabulary with Llama 3's pattern, Qwen's NFC, missing
 * bytes and added tokens of every kind. */
#include "runtime/plan/plan.h"
#include "tests/runtime/text/tokenizers.h"

#include <pthread.h>

static const char golden_path[] = "tests/golden/text/small_ids.json";

SPEC(ids_equal_the_references_in_every_script_and_on_what_breaks_tokenizers)
{
    const size_t n = for_each_golden(golden_path, "texts", check_ids, small_tokenizer());
    assert_true(n > 350);
}

SPEC(ids_become_the_references_text_at_once_and_one_by_one)
{
    for_each_golden(golden_path, "texts", check_text, small_tokenizer());
}

SPEC(long_texts_are_near_linear)
{
    const size_t n = for_each_golden(golden_path, "long", check_long, small_tokenizer());
    assert_true(n >= 20);
}

SPEC(an_empty_text_has_no_ids)
{
    struct burin_arena arena = { 0 };
    assert_int_equal(encode(small_tokenizer(), span(""), BURIN_PLAIN, &arena).n, 0);
    assert_int_equal(
            encode(small_tokenizer(), (struct burin_span){ 0 }, BURIN_SPECIALS, &arena).n,
            0);
    burin_arena_close(&arena);
}

SPEC(bytes_that_are_not_utf8_are_refused_with_the_place_of_the_first)
{
    static const char *const broken[] = {
        "\x80",         "\xBF",         "\xC0\x80",         "\xC1\xBF", "\xC3",
        "\xE0\x80\x80", "\xE0\x9F\xBF", "\xED\xA0\x80",     "\xE2\x82", "\xF0\x8F\xBF\xBF",
        "\xF0\x9F\x98", "\xF4\x90\x80", "\xF5\x80\x80\x80", "\xFF",     "\xC3(",
    };
    struct burin_arena arena = { 0 };
    int32_t *ids;
    size_t n;

    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        for (size_t before = 0; before < 20; before++) {
            char text[64];
            char place[64];
            memset(text, 'x', before);
            strcpy(text + before, broken[i]);
            snprintf(
                    place, sizeof place, "not UTF-8: byte 0x%02x at offset %zu",
                    (unsigned char)broken[i][0], before);
            ASSERT_REFUSED(
                    burin_encode(
                            small_tokenizer(), span(text), BURIN_PLAIN, &arena, &ids, &n,
                            &err),
                    BURIN_EFORMAT, place);
            assert_null(ids);
        }
    }
    burin_arena_close(&arena);
}

SPEC(a_tokenizer_takes_the_planned_bytes_and_refuses_any_other_number)
{
    struct burin_vocab vocab;
    struct burin_tokenizer *tokenizer;
    size_t bytes = 0;
    ASSERT_OK(burin_vocab_from_json_file(&vocab, "tests/golden/text/small.json", &err));
    ASSERT_OK(burin_tokenizer_plan(&vocab, &bytes, &err));
    void *memory = aligned_alloc(64, bytes + 64);

    ASSERT_REFUSED(
            burin_tokenizer_open(&tokenizer, &vocab, memory, bytes - 1, &err), BURIN_EUSAGE,
            "the tokenizer needs");
    ASSERT_REFUSED(
            burin_tokenizer_open(&tokenizer, &vocab, memory, bytes + 64, &err),
            BURIN_EUSAGE, "the tokenizer needs");
    ASSERT_REFUSED(
            burin_tokenizer_open(&tokenizer, &vocab, (char *)memory + 8, bytes, &err),
            BURIN_EUSAGE, "aligned to 64");
    assert_null(tokenizer);
    assert_int_equal(bytes % 64, 0);
    assert_true(burin_plan_tokenizer_bytes(vocab.n_tokens) >= (int64_t)bytes);
    free(memory);
    burin_vocab_close(&vocab);
}

SPEC(encoding_leaves_the_ids_in_the_arena_and_nothing_else)
{
    struct burin_arena arena = { 0 };
    char text[1000];
    memset(text, 'q', sizeof text);

    encode(small_tokenizer(), (struct burin_span){ text, sizeof text }, BURIN_PLAIN,
           &arena);

    assert_int_equal(arena.used, (sizeof text + 1) * sizeof(int32_t));
    burin_arena_close(&arena);
}

SPEC(a_small_vocabulary_knows_its_prefix_and_its_added_tokens)
{
    const struct burin_tokenizer *t = small_tokenizer();
    const struct burin_tokenizer_facts facts = burin_tokenizer_facts(t);
    bool left;
    bool right;

    assert_int_equal(facts.n_tokens, 2009);
    assert_int_equal(facts.n_prefix, 1);
    assert_int_equal(facts.prefix[0], burin_token_named(t, span("<|begin|>")));
    assert_int_equal(facts.eos, -1);
    assert_int_equal(
            burin_token_kind(t, burin_token_named(t, span("<|end|>"))),
            BURIN_TOKEN_SPECIAL);
    assert_int_equal(
            burin_token_kind(t, burin_token_named(t, span("<think>"))), BURIN_TOKEN_ADDED);
    burin_token_strips(t, burin_token_named(t, span("<mask>")), &left, &right);
    assert_true(left && !right);
    burin_token_strips(t, burin_token_named(t, span("<tail>")), &left, &right);
    assert_true(!left && right);
}

SPEC(the_same_file_has_the_same_hash_and_one_merge_less_another)
{
    struct burin_vocab vocab;
    const uint64_t hash = burin_tokenizer_facts(small_tokenizer()).hash;

    ASSERT_OK(burin_vocab_from_json_file(&vocab, "tests/golden/text/small.json", &err));
    struct burin_tokenizer *same = open_vocab(&vocab);
    assert_true(burin_tokenizer_facts(same).hash == hash);
    close_tokenizer(same);

    ASSERT_OK(burin_vocab_from_json_file(&vocab, "tests/golden/text/small.json", &err));
    vocab.n_merges--;
    struct burin_tokenizer *other = open_vocab(&vocab);
    assert_true(burin_tokenizer_facts(other).hash != hash);
    close_tokenizer(other);
}

static void *encode_often(void *hash)
{
    const struct burin_span text =
            span("Caf\xC3\xA9 e\xCC\x81 don't <|end|> \xF0\x9F\xA6\x99 12345");
    for (int i = 0; i < 200; i++) {
        struct burin_arena arena = { 0 };
        struct ids ids;
        if (burin_encode(
                    small_tokenizer(), text, BURIN_SPECIALS, &arena, &ids.at, &ids.n, NULL))
            return NULL;
        *(uint64_t *)hash = hash_of_ids(ids);
        burin_arena_close(&arena);
    }
    return hash;
}

SPEC(any_number_of_threads_encode_at_once)
{
    pthread_t threads[4];
    uint64_t hashes[4];
    small_tokenizer();

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, encode_often, &hashes[i]), 0);

    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_ptr_equal(result, &hashes[i]);
        assert_true(hashes[i] == hashes[0]);
    }
}

SPEC(the_tokenizer_is_given_back)
{
    close_tokenizer(small_tokenizer());
}
