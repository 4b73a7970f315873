/* tests/runtime/text/tokenizers.h -- Tokenizers for tests, and what Hugging Face's made of the
 * same texts (tests/golden/README.md).
 *
 * SmolLM2's vocabulary is in a file that is not committed: BURIN_TEST_GGUF, or where
 * tools/demo-weights puts it. Without it a test ends with 77, and counts as skipped. */
#ifndef BURIN_TEST_TOKENIZERS_H
#define BURIN_TEST_TOKENIZERS_H

#include "runtime/base/json_scan.h"
#include "runtime/text/detokenize.h"
#include "runtime/text/tokenizer.h"
#include "runtime/weights/gguf.h"

#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNUSED __attribute__((unused))

static struct burin_error err;

static inline struct burin_span span(const char *text)
{
    return burin_span_of(text);
}

/* Aborts the test with the message of what failed. */
#define ASSERT_OK(call)                                                                    \
    do {                                                                                   \
        err = (struct burin_error){ 0 };                                                   \
        const enum burin_status status_ = (call);                                          \
        if (status_)                                                                       \
            fail_msg("%s: status %d: %s", #call, (int)status_, err.message);               \
    } while (0)

#define ASSERT_REFUSED(call, wanted, text)                                                 \
    do {                                                                                   \
        err = (struct burin_error){ 0 };                                                   \
        const enum burin_status status_ = (call);                                          \
        if (status_ != (wanted) || !strstr(err.message, text))                             \
            fail_msg(                                                                      \
                    "%s: status %d: \"%s\" lacks \"%s\"", #call, (int)status_,             \
                    err.message, text);                                                    \
    } while (0)

/* ---- Opening ----------------------------------------------------------------------- */

/* In memory of exactly the planned bytes, so that ASan sees what goes beyond. It leaks nothing:
 * close_tokenizer() frees it. */
UNUSED static struct burin_tokenizer *open_vocab(struct burin_vocab *vocab)
{
    struct burin_tokenizer *tokenizer;
    size_t bytes = 0;
    ASSERT_OK(burin_tokenizer_plan(vocab, &bytes, &err));
    void *memory = NULL;
    assert_int_equal(posix_memalign(&memory, 64, bytes), 0);
    memset(memory, 0xA5, bytes);
    ASSERT_OK(burin_tokenizer_open(&tokenizer, vocab, memory, bytes, &err));
    assert_ptr_equal(tokenizer, memory);
    burin_vocab_close(vocab);
    return tokenizer;
}

UNUSED static void close_tokenizer(struct burin_tokenizer *tokenizer)
{
    burin_tokenizer_close(tokenizer);
    free(tokenizer);
}

UNUSED static char *read_text(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s is not there", path);
    fseek(file, 0, SEEK_END);
    *length = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(*length + 1);
    assert_int_equal(fread(text, 1, *length, file), *length);
    fclose(file);
    return text;
}

UNUSED static struct burin_tokenizer *small_tokenizer(void)
{
    static struct burin_tokenizer *tokenizer;
    struct burin_vocab vocab;
    if (!tokenizer) {
        ASSERT_OK(burin_vocab_from_json_file(&vocab, "tests/golden/text/small.json", &err));
        tokenizer = open_vocab(&vocab);
    }
    return tokenizer;
}

UNUSED static const char *smollm2_path(void)
{
    const char *path = getenv("BURIN_TEST_GGUF");
    if (!path)
        path = "build/weights/SmolLM2-135M-Instruct.Q4_1.gguf";
    if (access(path, R_OK) != 0) {
        fprintf(stderr,
                "SKIPPED: %s is not there: tools/demo-weights smollm2-135m, or set "
                "BURIN_TEST_GGUF\n",
                path);
        exit(77);
    }
    return path;
}

UNUSED static struct burin_tokenizer *smollm2_tokenizer(void)
{
    static struct burin_tokenizer *tokenizer;
    struct burin_vocab vocab;
    struct burin_gguf gguf;
    if (!tokenizer) {
        ASSERT_OK(burin_gguf_open(&gguf, smollm2_path(), &err));
        ASSERT_OK(burin_vocab_from_gguf(&vocab, &gguf, &err));
        tokenizer = open_vocab(&vocab);
        burin_gguf_close(&gguf);
    }
    return tokenizer;
}

/* ---- Ids ---------------------------------------------------------------------------- */

struct ids {
    int32_t *at;
    size_t n;
};

/* In `arena`. */
UNUSED static struct ids encode(
        const struct burin_tokenizer *tokenizer,
        struct burin_span text,
        enum burin_specials specials,
        struct burin_arena *arena)
{
    struct ids ids;
    ASSERT_OK(burin_encode(tokenizer, text, specials, arena, &ids.at, &ids.n, &err));
    return ids;
}

UNUSED static void assert_ids(
        struct burin_span text, struct ids ids, const int32_t *wanted, size_t n)
{
    for (size_t i = 0; i < ids.n || i < n; i++)
        if (i >= ids.n || i >= n || ids.at[i] != wanted[i])
            fail_msg(
                    "%s: id %zu is %d of %zu, %d of %zu is right", burin_quote(text).text,
                    i, i < ids.n ? ids.at[i] : -1, ids.n, i < n ? wanted[i] : -1, n);
}

UNUSED static uint64_t hash_of_ids(struct ids ids)
{
    uint64_t hash = 0xCBF29CE484222325;
    for (size_t i = 0; i < ids.n; i++)
        for (int shift = 0; shift < 32; shift += 8)
            hash = (hash ^ ((uint32_t)ids.at[i] >> shift & 0xFF)) * 0x100000001B3;
    return hash;
}

/* ---- Golden data ---------------------------------------------------------------------- */

enum { GOLDEN_IDS = 4096 };

struct golden {
    struct burin_span text;
    struct burin_span decoded;
    int32_t plain[GOLDEN_IDS];
    size_t n_plain;
    int32_t specials[GOLDEN_IDS];
    size_t n_specials;
    uint64_t times;
    uint64_t n_ids;
    uint64_t hash;
};

UNUSED static size_t scan_ids(struct burin_json_scan *scan, int32_t *ids)
{
    size_t n = 0;
    bool more = true;
    ASSERT_OK(burin_json_enter(scan, '[', &err));
    for (;;) {
        uint64_t id;
        ASSERT_OK(burin_json_element(scan, &more, &err));
        if (!more)
            return n;
        ASSERT_OK(burin_json_u64(scan, &id, &err));
        assert_true(n < GOLDEN_IDS);
        ids[n++] = (int32_t)id;
    }
}

UNUSED static void scan_golden(struct burin_json_scan *scan, struct golden *golden)
{
    struct burin_span key;
    bool has_specials = false;
    bool has_decoded = false;
    bool more;

    ASSERT_OK(burin_json_enter(scan, '{', &err));
    for (;;) {
        ASSERT_OK(burin_json_member(scan, &key, &more, &err));
        if (!more)
            break;
        if (burin_span_is(key, "text")) {
            ASSERT_OK(burin_json_take_text(scan, &golden->text, &err));
        } else if (burin_span_is(key, "decoded")) {
            ASSERT_OK(burin_json_take_text(scan, &golden->decoded, &err));
            has_decoded = true;
        } else if (burin_span_is(key, "plain")) {
            golden->n_plain = scan_ids(scan, golden->plain);
        } else if (burin_span_is(key, "specials")) {
            golden->n_specials = scan_ids(scan, golden->specials);
            has_specials = true;
        } else if (burin_span_is(key, "times")) {
            ASSERT_OK(burin_json_u64(scan, &golden->times, &err));
        } else if (burin_span_is(key, "n_ids")) {
            ASSERT_OK(burin_json_u64(scan, &golden->n_ids, &err));
        } else if (burin_span_is(key, "hash")) {
            struct burin_span hash;
            ASSERT_OK(burin_json_take_text(scan, &hash, &err));
            golden->hash = strtoull(hash.at, NULL, 16);
        } else {
            fail_msg("golden data with %s", burin_quote(key).text);
        }
    }
    if (!has_specials) {
        memcpy(golden->specials, golden->plain, sizeof golden->plain);
        golden->n_specials = golden->n_plain;
    }
    if (!has_decoded)
        golden->decoded = golden->text;
}

/* Call `check` for each text under `key`, "texts" or "long"; returns how many there were. */
UNUSED static size_t for_each_golden(
        const char *path,
        const char *wanted,
        void (*check)(const struct burin_tokenizer *, const struct golden *),
        const struct burin_tokenizer *tokenizer)
{
    static struct golden golden;
    struct burin_json_scan scan;
    struct burin_span key;
    size_t length;
    size_t n = 0;
    bool more;
    char *text = read_text(path, &length);

    ASSERT_OK(burin_json_scan_begin(&scan, path, text, length, &err));
    ASSERT_OK(burin_json_enter(&scan, '{', &err));
    for (;;) {
        ASSERT_OK(burin_json_member(&scan, &key, &more, &err));
        if (!more)
            break;
        if (!burin_span_is(key, wanted)) {
            ASSERT_OK(burin_json_skip(&scan, &err));
            continue;
        }
        ASSERT_OK(burin_json_enter(&scan, '[', &err));
        for (;;) {
            ASSERT_OK(burin_json_element(&scan, &more, &err));
            if (!more)
                break;
            scan_golden(&scan, &golden);
            check(tokenizer, &golden);
            n++;
        }
    }
    free(text);
    return n;
}

/* ---- What every tokenizer is held to ----------------------------------------------------- */

UNUSED static void check_ids(
        const struct burin_tokenizer *tokenizer, const struct golden *golden)
{
    struct burin_arena arena = { 0 };
    assert_ids(
            golden->text, encode(tokenizer, golden->text, BURIN_PLAIN, &arena),
            golden->plain, golden->n_plain);
    assert_ids(
            golden->text, encode(tokenizer, golden->text, BURIN_SPECIALS, &arena),
            golden->specials, golden->n_specials);
    burin_arena_close(&arena);
}

/* All at once, and one by one: each part is whole characters. */
UNUSED static void check_text(
        const struct burin_tokenizer *tokenizer, const struct golden *golden)
{
    struct burin_arena arena = { 0 };
    struct burin_span text;
    ASSERT_OK(burin_decode(
            tokenizer, golden->plain, golden->n_plain, true, &arena, &text, &err));
    if (burin_span_compare(text, golden->decoded) != 0)
        fail_msg(
                "%s decodes to %s", burin_quote(golden->text).text, burin_quote(text).text);

    struct burin_decoder decoder = { .tokenizer = tokenizer, .keep_specials = true };
    char *part = malloc(burin_decoder_room(tokenizer));
    size_t done = 0;
    for (size_t i = 0; i <= golden->n_plain; i++) {
        const size_t n = i < golden->n_plain
                                 ? burin_decoder_push(&decoder, golden->plain[i], part)
                                 : burin_decoder_flush(&decoder, part);
        assert_true(done + n <= text.length);
        assert_memory_equal(part, text.at + done, n);
        done += n;
        assert_true(done == text.length || (text.at[done] & 0xC0) != 0x80);
    }
    assert_int_equal(done, text.length);
    free(part);
    burin_arena_close(&arena);
}

UNUSED static void check_long(
        const struct burin_tokenizer *tokenizer, const struct golden *golden)
{
    struct burin_arena arena = { 0 };
    const size_t length = golden->text.length * golden->times;
    char *text = malloc(length);
    for (size_t i = 0; i < golden->times; i++)
        memcpy(text + i * golden->text.length, golden->text.at, golden->text.length);

    const struct ids ids =
            encode(tokenizer, (struct burin_span){ text, length }, BURIN_PLAIN, &arena);

    if (ids.n != golden->n_ids || hash_of_ids(ids) != golden->hash)
        fail_msg(
                "%s %zu times: %zu ids, %zu are right", burin_quote(golden->text).text,
                (size_t)golden->times, ids.n, (size_t)golden->n_ids);
    burin_arena_close(&arena);
    free(text);
}

#endif
