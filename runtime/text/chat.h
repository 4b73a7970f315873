/* runtime/text/chat.h -- Messages to token ids, by the model's chat function in Lua
 * (models/llama_chat.lua), run by an embedded liblua.
 *
 *     struct burin_chat chat = { model->chat, model->variant, "llama_chat.lua" };
 *     status = burin_chat_render(&chat, messages, n, options, &arena, &pieces, &n_pieces, err);
 *     status = burin_chat_encode(tokenizer, pieces, n_pieces, &arena, &ids, &n_ids, err);
 *     status = burin_chat_stops(&chat, tokenizer, stops, &n_stops, err);
 *
 * The source is a chunk that returns a table of formats; the one is used whose key begins the
 * variant's name, the longest such:
 *
 *     return {
 *       smollm2 = {
 *         stop   = { "<|im_end|>", "<|endoftext|>" },          -- what ends an answer
 *         render = function(messages, options) return pieces end,
 *       },
 *     }
 *
 * messages[i] = { role = "user", content = "..." }; options.add_generation_prompt,
 * options.date. Pieces are texts and control(name), in order. In the sandbox: control, trim
 * (as Python's strip), error (its text, untouched, is our message), ipairs, select, tostring,
 * type, table.concat, table.insert, string.sub, len, lower, upper, byte, format.
 *
 * Safety   What a message holds is text, whatever it looks like; only control(name) makes a
 *          control token. A chunk has 10 million instructions and 64 MiB beyond 16 times the
 *          messages. A call that fails leaves nothing behind: the next one is as the first.
 * Memory   Results lie in the caller's arena; the Lua state has its own until the call ends.
 * Threads  Any number at once, each with its own arena.
 * Errors   BURIN_EFORMAT the chat function raised or made no pieces, BURIN_EMISMATCH a control
 *          token that the vocabulary lacks or a variant without a format, BURIN_ELIMIT
 *          instructions or memory, BURIN_EFORMAT text that is not UTF-8, BURIN_ENOMEM. */
#ifndef BURIN_TEXT_CHAT_H
#define BURIN_TEXT_CHAT_H

#include "runtime/base/arena.h"
#include "runtime/base/span.h"
#include "runtime/base/status.h"
#include "runtime/text/tokenizer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct burin_chat {
    const char *source;  /* of the chat function */
    const char *variant; /* "smollm2-135m" */
    const char *name;    /* of the source, for messages */
};

struct burin_message {
    const char *role;          /* "system", "user", "assistant" */
    struct burin_span content; /* { NULL, 0 } is an empty text */
};

struct burin_chat_options {
    bool add_generation_prompt; /* end where the assistant begins to speak */
    const char *date;           /* "26 Jul 2024" where a format states one; NULL: its own */
};

struct burin_piece {
    struct burin_span text; /* or the name of the control token */
    bool control;
};

/* Texts that a format puts side by side are one piece, as in the text that the model was trained
 * on. */
enum burin_status burin_chat_render(
        const struct burin_chat *chat,
        const struct burin_message *messages,
        int n_messages,
        struct burin_chat_options options,
        struct burin_arena *arena,
        struct burin_piece **pieces,
        int *n_pieces,
        struct burin_error *err);

enum burin_status burin_chat_encode(
        const struct burin_tokenizer *tokenizer,
        const struct burin_piece *pieces,
        int n_pieces,
        struct burin_arena *arena,
        int32_t **ids,
        size_t *n_ids,
        struct burin_error *err);

/* The ids that end an answer, the format's first. Names that the vocabulary lacks are
 * BURIN_EMISMATCH. */
enum { BURIN_CHAT_MAX_STOPS = 8 };
enum burin_status burin_chat_stops(
        const struct burin_chat *chat,
        const struct burin_tokenizer *tokenizer,
        int32_t stops[BURIN_CHAT_MAX_STOPS],
        int *n_stops,
        struct burin_error *err);

#endif
