#include "runtime/app/thought.h"

#include <string.h>

struct burin_thought burin_thought_begin(
        const struct burin_chat_facts *facts, const int32_t *ids, size_t n_ids)
{
    struct burin_thought thought = {
        .from = facts->think_from,
        .to = facts->think_to,
        .head = facts->think_head,
    };
    for (size_t i = n_ids; i > 0 && thought.from >= 0; i--) {
        if (ids[i - 1] == thought.to)
            break;
        /* Its head stands in the prompt. */
        thought.thinks = ids[i - 1] == thought.from;
        if (thought.thinks)
            break;
    }
    return thought;
}

bool burin_thought_mark(struct burin_thought *thought, int32_t id)
{
    if (thought->from < 0 || (id != thought->from && id != thought->to))
        return false;
    thought->thinks = thought->in_head = id == thought->from;
    thought->n_head = 0;
    return true;
}

size_t burin_thought_text(struct burin_thought *thought, char *text, size_t length)
{
    const char *head = thought->head + thought->n_head;
    const size_t left = strlen(head);
    const size_t n = length < left ? length : left;

    if (!thought->in_head)
        return length;
    if (memcmp(text, head, n) == 0) {
        thought->n_head += n;
        thought->in_head = n < left;
        memmove(text, text + n, length - n);
        return length - n;
    }
    thought->in_head = false;
    memmove(text + thought->n_head, text, length);
    memcpy(text, thought->head, thought->n_head);
    return length + thought->n_head;
}
