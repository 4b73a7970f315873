/* What goes down with a context, and with a process. */
#include "runtime/device/virtual/state.h"

static void destroy(struct burin_virtual_item *item)
{
    const struct burin_virtual_body *body = burin_virtual_self()->machine->body;
    switch (item->kind) {
    case BURIN_VIRTUAL_MODULE:
        if (body)
            body->unload(body->self, ((struct burin_cu_module *)item)->loaded);
        break;
    case BURIN_VIRTUAL_STREAM: {
        struct burin_cu_stream *stream = (struct burin_cu_stream *)item;
        if (stream->captured) {
            burin_virtual_release_nodes(stream->captured);
            stream->captured = NULL;
            burin_virtual_self()->n_capturing--;
        }
        stream->first = NULL; /* what it had to do is not done */
        break;
    }
    case BURIN_VIRTUAL_GRAPH:
        burin_virtual_release_nodes(((struct burin_cu_graph *)item)->nodes);
        break;
    case BURIN_VIRTUAL_EXEC:
        burin_virtual_release_nodes(((struct burin_cu_exec *)item)->nodes);
        burin_virtual_give(item->context->card, item->bytes);
        break;
    case BURIN_VIRTUAL_MEMORY:
    case BURIN_VIRTUAL_HANDLE:
    case BURIN_VIRTUAL_ADDRESSES:
    case BURIN_VIRTUAL_MAPPING:
    case BURIN_VIRTUAL_HOST:
        burin_virtual_free_piece((struct burin_virtual_piece *)item);
        return;
    default:
        break;
    }
    burin_virtual_drop(item);
}

/* Streams first: what they still have to do is not done. */
static const enum burin_virtual_kind order[] = {
    BURIN_VIRTUAL_STREAM,    BURIN_VIRTUAL_EVENT,   BURIN_VIRTUAL_EXEC,
    BURIN_VIRTUAL_GRAPH,     BURIN_VIRTUAL_MODULE,  BURIN_VIRTUAL_MEMORY,
    BURIN_VIRTUAL_HOST,      BURIN_VIRTUAL_MAPPING, BURIN_VIRTUAL_HANDLE,
    BURIN_VIRTUAL_ADDRESSES, BURIN_VIRTUAL_PROGRAM,
};
enum { N_ORDER = sizeof order / sizeof *order };

void burin_virtual_destroy_context(struct burin_cu_context *context)
{
    struct burin_virtual_process *self = burin_virtual_self();
    for (struct burin_cu_stream *stream = self->leaving; stream;
         stream = stream->next_leaving)
        if (stream->item.context == context)
            stream->first = NULL;
    for (int i = 0; i < N_ORDER; i++)
        for (struct burin_virtual_item *item = self->items[order[i]], *next; item;
             item = next) {
            next = item->next;
            if (item->context != context)
                continue;
            if (item != &context->stream->item) {
                self->abandoned[item->kind].n++;
                self->abandoned[item->kind].bytes += item->bytes;
            }
            destroy(item);
        }
    burin_virtual_give(
            context->card,
            context->item.bytes + context->code_taken + context->local_taken);
    self->contexts[context->card] = NULL;
    burin_virtual_drop(&context->item);
}

void burin_virtual_destroy_process(void)
{
    struct burin_virtual_process *self = burin_virtual_self();
    struct burin_virtual *machine = self->machine;
    for (int card = 0; card < BURIN_VIRTUAL_CARDS; card++)
        if (self->contexts[card])
            burin_virtual_destroy_context(self->contexts[card]);
    for (int i = 0; i < N_ORDER; i++)
        for (struct burin_virtual_item *item = self->items[order[i]], *next; item;
             item = next) {
            next = item->next;
            if (item->live) /* a handle goes with the last of its mappings */
                destroy(item);
        }
    *self = (struct burin_virtual_process){ .machine = machine,
                                            .life = burin_virtual_life() };
}
