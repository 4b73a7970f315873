/* runtime/app/talk.h -- A conversation with a model: messages in, an answer streamed out.
 *
 * Memory   A talk takes everything it needs from its app's arena when it opens, and a turn's
 *          own from its `call` arena. What is said lies in `call` for one turn, the messages
 *          in the app's arena.
 * Threads  One. */
#ifndef BURIN_APP_TALK_H
#define BURIN_APP_TALK_H

#include "runtime/app/app.h"
#include "runtime/app/stop.h"
#include "runtime/text/chat.h"
#include "runtime/text/detokenize.h"

#include <stdbool.h>
#include <stdio.h>

enum { BURIN_MAX_MESSAGES = 1024 };

struct burin_talk {
    struct burin_app *app;
    struct burin_engine *engine;
    const struct burin_tokenizer *tokenizer;
    struct burin_chat chat;
    FILE *out; /* stdout: the answer, as it is made; NULL: nowhere */

    int n_stop_ids;
    int32_t stop_ids[BURIN_CHAT_MAX_STOPS + 1];

    int n_messages;
    struct burin_message messages[BURIN_MAX_MESSAGES];

    struct burin_request request; /* of the last turn: counts, times, seed, finish */
    int32_t *ids;                 /* that it made; room for n_ctx */
    int n_ids;
    bool ended_with_newline;

    struct burin_decoder decoder;
    struct burin_stop stop;
    char *room; /* for one token's text */
    struct burin_arena call;
};

/* Open an engine of these options, its tokenizer and the stop texts. */
enum burin_status burin_talk_open(
        struct burin_talk *talk,
        struct burin_app *app,
        struct burin_options *options,
        struct burin_error *err);
void burin_talk_close(struct burin_talk *talk);

/* Add a message; its content must live as long as the talk. */
enum burin_status burin_talk_say(
        struct burin_talk *talk,
        const char *role,
        struct burin_span content,
        struct burin_error *err);

/* Let the model answer the messages so far, or with `raw` continue that text. The answer's
 * text is in the app's arena. BURIN_ESTOPPED where Ctrl-C ended it (*answer is what came
 * until then), BURIN_ELIMIT where the prompt is beyond the context. */
enum burin_status burin_talk_answer(
        struct burin_talk *talk,
        const struct burin_span *raw,
        struct burin_span *answer,
        struct burin_error *err);

#endif
