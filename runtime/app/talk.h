/* runtime/app/talk.h -- A conversation with a model: messages in, an answer streamed out.
 *
 * Thoughts What the model thinks before it answers goes to `thoughts`, apart from the answer, and
 *          is no part of it: stop texts don't end it, later turns don't see it.
 *
 * Memory   A talk takes everything it needs from its app's arena when it opens, and a turn's
 *          own from its `call` arena. What is said lies in `call` for one turn, the messages
 *          in the app's arena.
 * Threads  One. */
#ifndef BURIN_APP_TALK_H
#define BURIN_APP_TALK_H

#include "runtime/app/app.h"
#include "runtime/app/attach.h"
#include "runtime/app/stop.h"
#include "runtime/app/thought.h"
#include "runtime/text/chat.h"
#include "runtime/text/detokenize.h"
#include "runtime/weights/generation.h"

#include <stdbool.h>
#include <stdio.h>

enum { BURIN_MAX_MESSAGES = 1024 };

struct burin_talk {
    struct burin_app *app;
    struct burin_engine *engine;
    const struct burin_tokenizer *tokenizer;
    struct burin_chat chat;
    FILE *out;                 /* stdout: the answer, as it is made; NULL: nowhere */
    FILE *thoughts;            /* stderr where it is a terminal or with -v; NULL: nowhere */
    const char *thought_begin; /* what makes a terminal show it as such: "\033[2m" or "" */
    const char *thought_end;

    struct burin_chat_facts facts;
    int n_stop_ids; /* the format's, and what the weights say */
    int32_t stop_ids[BURIN_CHAT_MAX_STOPS + BURIN_GENERATION_STOPS + 1];
    struct burin_sampling
            sampling;  /* what was asked for, else what the model's authors mean */
    bool own_sampling; /* some of it is theirs */

    int n_messages;
    struct burin_message messages[BURIN_MAX_MESSAGES];
    struct burin_attached *attached; /* to the first message of a user; NULL: nothing */

    struct burin_request request; /* of the last turn: counts, times, seed, finish */
    int32_t *ids;                 /* that it made; room for n_ctx */
    int n_ids;
    bool ended_with_newline;

    struct burin_thought thought;
    struct burin_thought first; /* as the turn began */
    struct burin_decoder thought_decoder;
    bool showed_thought;
    struct burin_span thought_text; /* of the last turn */

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

/* Add a message; its content must live as long as the talk. Pictures and video stand before the
 * text of a user's first. */
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
