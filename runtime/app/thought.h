/* runtime/app/thought.h -- Tells what a model thinks from what it answers, by the tokens that stand
 * around a thought (chat.h).
 *
 *     model: <|channel>thought\n  2 + 2, easy.  <channel|>  4  <turn|>
 *                                 ^ thought                 ^ answer
 *
 * Memory   A small struct of the caller's.
 * Threads  One. */
#ifndef BURIN_APP_THOUGHT_H
#define BURIN_APP_THOUGHT_H

#include "runtime/text/chat.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct burin_thought {
    int32_t from; /* -1: there are no thoughts */
    int32_t to;
    const char *head;

    bool thinks;   /* the next token belongs to a thought */
    bool in_head;  /* private: no text of it has come yet */
    size_t n_head; /* private: bytes of the head that have come */
};

/* Begin behind these ids of a prompt: it may have begun a thought itself. */
struct burin_thought burin_thought_begin(
        const struct burin_chat_facts *facts, const int32_t *ids, size_t n_ids);

/* The next token that was made; true where it is a mark, which has no text of its own. */
bool burin_thought_mark(struct burin_thought *thought, int32_t id);

/* What a thought's next text says once its head is left out; returns its length, at most
 * BURIN_CHAT_HEAD more. What only looked like the head comes back with the text behind it. */
size_t burin_thought_text(struct burin_thought *thought, char *text, size_t length);

#endif
