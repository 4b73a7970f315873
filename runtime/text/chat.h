/* runtime/text/chat.h -- Messages to token ids, by the model's chat function in Lua
 * (models/llama_chat.lua), run by an embedded liblua.
 *
 *     struct burin_chat chat = { model->chat, model->variant, "llama_chat.lua" };
 *     status = burin_chat_render(&chat, messages, n, options, &arena, &pieces, &n_pieces, err);
 *     status = burin_chat_encode(tokenizer, pieces, n_pieces, &arena, &prompt, err);
 *     status = burin_chat_facts(&chat, tokenizer, &facts, err);
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
 * and where the model has them
 *
 *         media    = { "image", "video", "audio" },            -- parts that render places
 *         thinking = { from = "<|channel>", head = "thought\n", to = "<channel|>" },
 *         sampling = { temperature = 1, top_k = 64, top_p = 0.95 },
 *
 * messages[i] = { role = "user", content = "..." }, and as far as they were given reasoning,
 * tool_calls, tool_call_id, name. With parts, content is a list in prompt order of
 *
 *     { type = "text", text = "..." }
 *     { type = "image", items = { { n_soft = 256 } } }         -- or audio
 *     { type = "video", items = { { n_soft = 66, seconds = 0.5 }, ... } }
 *
 * options.add_generation_prompt, date, thinking, tools. tools and tool_calls are JSON, as
 * OpenAI's interface has them, decoded: objects and lists are tables, null is null.
 *
 * Pieces are texts, control(name), and soft(name, item): as many of that token as the item has
 * soft tokens, whose places the encoder's rows take. Items come once each, in prompt order.
 *
 * In the sandbox: control, soft, trim (as Python's strip), split(text, by) (as Python's),
 * keys(x) (an object's keys as jinja's dictsort puts them; nil for what is no object), null,
 * error (its text, untouched, is our message), ipairs, select, tostring (numbers as Python),
 * type, table.concat, table.insert, string.sub, len, lower, upper, byte, format.
 *
 * Safety   What a message holds is text, whatever it looks like; only control(name) and
 *          soft(name, item) make control tokens. A chunk has 10 million instructions and 64 MiB
 *          beyond 16 times the messages. A call that fails leaves nothing behind: the next one
 *          is as the first.
 * Memory   Results lie in the caller's arena; the Lua state has its own until the call ends.
 * Threads  Any number at once, each with its own arena.
 * Errors   BURIN_EFORMAT the chat function raised or made no pieces, BURIN_EMISMATCH a control
 *          token that the vocabulary lacks, a variant without a format, or a part that the
 *          format has no place for, BURIN_ELIMIT instructions or memory, BURIN_EFORMAT text that
 *          is not UTF-8 or not JSON, BURIN_ENOMEM. */
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

/* A part of a message: text, or what an encoder makes soft tokens of. */
enum burin_part_kind {
    BURIN_PART_TEXT,
    BURIN_PART_IMAGE,
    BURIN_PART_VIDEO,
    BURIN_PART_AUDIO,
    BURIN_N_PART_KINDS
};
struct burin_part {
    enum burin_part_kind kind;
    struct burin_span text; /* of BURIN_PART_TEXT */
    int n_items;            /* of the encoder: 1, or the frames of a video */
    const int *n_soft;      /* soft tokens of each item */
    const double *seconds;  /* of a video: where in it each frame stands */
};

struct burin_message {
    const char *role;          /* "system", "user", "assistant", "tool" */
    struct burin_span content; /* { NULL, 0 } is an empty text */
    int n_parts;               /* in place of content, in prompt order */
    const struct burin_part *parts;
    struct burin_span reasoning;  /* of an assistant's message: its thought */
    struct burin_span tool_calls; /* JSON: a list */
    const char *tool_call_id;     /* of a tool's message; NULL: not said */
    const char *name;
};

struct burin_chat_options {
    bool add_generation_prompt; /* end where the assistant begins to speak */
    const char *date;           /* "26 Jul 2024" where a format states one; NULL: its own */
    bool thinking;              /* let the model think before it answers */
    struct burin_span tools;    /* JSON: a list */
};

struct burin_piece {
    struct burin_span text; /* or the name of the control token */
    bool control;
    int n_soft; /* above 0: so many of that token, in place of an item's soft tokens */
    int item;   /* counted over all messages, from 0 */
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

/* ids[at] and the next n - 1 stand where the encoder's rows for this item go. */
struct burin_soft {
    int item;
    size_t at;
    int n;
};

struct burin_prompt {
    size_t n_ids;
    int32_t *ids;
    int n_soft;
    struct burin_soft *soft; /* one an item, in order of both */
};

enum burin_status burin_chat_encode(
        const struct burin_tokenizer *tokenizer,
        const struct burin_piece *pieces,
        int n_pieces,
        struct burin_arena *arena,
        struct burin_prompt *prompt,
        struct burin_error *err);

enum { BURIN_CHAT_MAX_STOPS = 8, BURIN_CHAT_HEAD = 32 };
struct burin_chat_facts {
    int n_stops;
    int32_t stops[BURIN_CHAT_MAX_STOPS]; /* ids that end an answer, the format's first */
    int32_t think_from; /* what stands around a thought; -1: nothing does */
    int32_t think_to;
    char think_head[BURIN_CHAT_HEAD]; /* with what a thought begins that is not its text */
    bool has_sampling;                /* what follows is said */
    float temperature;
    int top_k;
    float top_p;
};

/* Names that the vocabulary lacks are BURIN_EMISMATCH. */
enum burin_status burin_chat_facts(
        const struct burin_chat *chat,
        const struct burin_tokenizer *tokenizer,
        struct burin_chat_facts *facts,
        struct burin_error *err);

#endif
