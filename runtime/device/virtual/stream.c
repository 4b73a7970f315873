/* Streams and events: work that is kept in the order it came, and done when somebody waits. */
#include "runtime/device/virtual/state.h"

#include <string.h>

/* Behind so many pieces of work the host waits, as it does on a real card. */
enum { MOST_WORK = 1024 };

/* ---- Nodes ----------------------------------------------------------------------------- */

struct burin_cu_node *burin_virtual_node(enum burin_virtual_work work)
{
    struct burin_virtual *machine = burin_virtual_self()->machine;
    struct burin_cu_node *node = machine->spare;
    if (node)
        machine->spare = node->next;
    else
        node = BURIN_TAKE(&machine->arena, 1, struct burin_cu_node);
    if (node)
        *node = (struct burin_cu_node){ .work = work };
    return node;
}

static void spare(struct burin_cu_node *node)
{
    struct burin_virtual *machine = burin_virtual_self()->machine;
    node->next = machine->spare;
    machine->spare = node;
}

void burin_virtual_release_nodes(struct burin_virtual_nodes *nodes)
{
    if (--nodes->n_owners)
        return;
    for (struct burin_cu_node *node = nodes->first; node;) {
        struct burin_cu_node *next = node->next;
        spare(node);
        node = next;
    }
    nodes->first = NULL;
}

/* ---- Work -------------------------------------------------------------------------------- */

static int launch(const struct burin_cu_node *node)
{
    struct burin_virtual *machine = burin_virtual_self()->machine;
    struct burin_virtual_launch what = node->run.launch;
    what.kernel = &node->run.kernel;
    machine->counts.kernels++;
    return machine->body ? machine->body->launch(machine->body->self, &what) : CU_OK;
}

static int torn(void)
{
    burin_virtual_self()->machine->counts.torn++;
    return CU_ILLEGAL_ADDRESS;
}

/* Without a body the host reads zeros: always the same, and a buffer that is too small is found
 * by who watches over the host's memory. */
static int copy(const struct burin_cu_node *node)
{
    struct burin_virtual *machine = burin_virtual_self()->machine;
    const struct burin_virtual_body *body = machine->body;
    const size_t bytes = node->copy.bytes;
    const bool in = node->work == WORK_COPY_IN;
    const bool out = node->work == WORK_COPY_OUT;

    if ((!in && !burin_virtual_accessible(node->copy.from, bytes)) ||
        (!out && !burin_virtual_accessible(node->copy.to, bytes)) ||
        (node->copy.pinned && !burin_virtual_pinned(node->copy.host, bytes)))
        return torn();
    machine->counts.copies++;
    machine->counts.copied_bytes += (int64_t)bytes;
    if (body && in)
        body->copy_in(body->self, node->copy.to, node->copy.host, bytes);
    else if (body && out)
        body->copy_out(body->self, node->copy.host, node->copy.from, bytes);
    else if (body)
        body->copy(body->self, node->copy.to, node->copy.from, bytes);
    else if (out)
        memset(node->copy.host, 0, bytes);
    return CU_OK;
}

static int fill(const struct burin_cu_node *node)
{
    struct burin_virtual *machine = burin_virtual_self()->machine;
    const struct burin_virtual_body *body = machine->body;
    if (!burin_virtual_accessible(node->fill.to, node->fill.n * (size_t)node->fill.width))
        return torn();
    machine->counts.copies++;
    if (body)
        body->fill(
                body->self, node->fill.to, node->fill.value, node->fill.width,
                node->fill.n);
    return CU_OK;
}

/* What fails loses the context, and all work behind it is not done. */
void burin_virtual_do(struct burin_cu_node *node)
{
    struct burin_virtual_process *self = burin_virtual_self();
    int error = node->error;
    self->machine->ms += 0.01;
    if (self->lost)
        return;
    if (!error)
        switch (node->work) {
        case WORK_LAUNCH:
            error = launch(node);
            break;
        case WORK_COPY_IN:
        case WORK_COPY_OUT:
        case WORK_COPY:
            error = copy(node);
            break;
        case WORK_FILL:
            error = fill(node);
            break;
        case WORK_RECORD:
            node->mark.event->ms = self->machine->ms;
            break;
        case WORK_WAIT:
            burin_virtual_drain(node->mark.stream, node->mark.place);
            break;
        case WORK_GRAPH:
            for (struct burin_cu_node *n = node->exec->nodes->first; n; n = n->next)
                burin_virtual_do(n);
            break;
        }
    if (error)
        self->lost = error;
}

void burin_virtual_drain(struct burin_cu_stream *stream, uint64_t place)
{
    while (stream->first && stream->n_done < place) {
        struct burin_cu_node *node = stream->first;
        stream->first = node->next;
        burin_virtual_do(node);
        stream->n_done++;
        spare(node);
    }
}

void burin_virtual_drain_all(void)
{
    struct burin_virtual_process *self = burin_virtual_self();
    struct burin_virtual_item *item = self->items[BURIN_VIRTUAL_STREAM];
    for (; item; item = item->next) {
        struct burin_cu_stream *stream = (struct burin_cu_stream *)item; /* its head */
        burin_virtual_drain(stream, stream->n_put);
    }
    for (; self->leaving; self->leaving = self->leaving->next_leaving)
        burin_virtual_drain(self->leaving, self->leaving->n_put);
}

int burin_virtual_put(struct burin_cu_stream *stream, struct burin_cu_node *node)
{
    struct burin_virtual_process *self = burin_virtual_self();
    struct burin_virtual *machine = self->machine;
    if (stream->capture_invalid) {
        spare(node);
        return CU_CAPTURE_INVALIDATED;
    }
    node->error = machine->next_work_fails;
    machine->next_work_fails = 0;
    struct burin_virtual_nodes *captured = stream->captured;
    struct burin_cu_node **first = captured ? &captured->first : &stream->first;
    struct burin_cu_node **last = captured ? &captured->last : &stream->last;
    if (*first)
        (*last)->next = node;
    else
        *first = node;
    *last = node;
    if (captured) {
        captured->n++;
        return CU_OK;
    }
    stream->n_put++;
    if (machine->options.order == BURIN_VIRTUAL_EARLY)
        burin_virtual_drain(stream, stream->n_put);
    else if (stream->n_put - stream->n_done > MOST_WORK)
        burin_virtual_drain(stream, stream->n_put - MOST_WORK);
    return self->lost;
}

int burin_virtual_stream(struct burin_cu_stream **stream)
{
    if (!*stream)
        *stream = burin_virtual_current()->stream;
    return burin_virtual_is(&(*stream)->item, BURIN_VIRTUAL_STREAM) ? CU_OK
                                                                    : CU_INVALID_HANDLE;
}

int burin_virtual_no_capture(struct burin_cu_stream *stream)
{
    if (!stream->captured)
        return CU_OK;
    stream->capture_invalid = true;
    return CU_CAPTURE_UNSUPPORTED;
}

/* ---- Streams ------------------------------------------------------------------------------ */

CALL(cuStreamCreate,
     NEEDS_CONTEXT,
     (struct burin_cu_stream * *stream, unsigned flags),
     (stream, flags))
{
    if (flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return CU_INVALID_VALUE;
    *stream = burin_virtual_new(
            BURIN_VIRTUAL_STREAM, sizeof **stream, burin_virtual_current());
    return *stream ? CU_OK : CU_OUT_OF_MEMORY;
}

CALL(cuStreamDestroy_v2,
     NEEDS_CONTEXT | GIVES_BACK,
     (struct burin_cu_stream * stream),
     (stream))
{
    if (!stream || burin_virtual_stream(&stream) ||
        stream == burin_virtual_current()->stream)
        return CU_INVALID_HANDLE;
    struct burin_virtual_process *self = burin_virtual_self();
    if (stream->captured) {
        burin_virtual_release_nodes(stream->captured);
        stream->captured = NULL;
        self->n_capturing--;
    }
    burin_virtual_drop(&stream->item);
    stream->next_leaving = self->leaving;
    self->leaving = stream;
    return CU_OK;
}

CALL(cuStreamSynchronize, NEEDS_CONTEXT, (struct burin_cu_stream * stream), (stream))
{
    int result = burin_virtual_stream(&stream);
    if (!result)
        result = burin_virtual_no_capture(stream);
    if (result)
        return result;
    burin_virtual_drain(stream, stream->n_put);
    return burin_virtual_self()->lost;
}

/* Who asks again and again gets there. */
CALL(cuStreamQuery, NEEDS_CONTEXT, (struct burin_cu_stream * stream), (stream))
{
    int result = burin_virtual_stream(&stream);
    if (!result)
        result = burin_virtual_no_capture(stream);
    if (result)
        return result;
    const bool done = !stream->first;
    burin_virtual_drain(stream, stream->n_done + 1);
    if (burin_virtual_self()->lost)
        return burin_virtual_self()->lost;
    return done ? CU_OK : CU_NOT_READY;
}

CALL(cuCtxSynchronize, NEEDS_CONTEXT | NO_CAPTURE, (void), ())
{
    burin_virtual_drain_all();
    return burin_virtual_self()->lost;
}

/* ---- Events -------------------------------------------------------------------------------- */

CALL(cuEventCreate,
     NEEDS_CONTEXT,
     (struct burin_cu_event * *event, unsigned flags),
     (event, flags))
{
    *event =
            burin_virtual_new(BURIN_VIRTUAL_EVENT, sizeof **event, burin_virtual_current());
    if (!*event)
        return CU_OUT_OF_MEMORY;
    (*event)->untimed = (flags & CU_EVENT_UNTIMED) != 0;
    return CU_OK;
}

/* Work may still record it. */
CALL(cuEventDestroy_v2,
     NEEDS_CONTEXT | GIVES_BACK,
     (struct burin_cu_event * event),
     (event))
{
    if (!event || !burin_virtual_is(&event->item, BURIN_VIRTUAL_EVENT))
        return CU_INVALID_HANDLE;
    burin_virtual_drop(&event->item);
    return CU_OK;
}

CALL(cuEventRecord,
     NEEDS_CONTEXT,
     (struct burin_cu_event * event, struct burin_cu_stream *stream),
     (event, stream))
{
    if (!event || !burin_virtual_is(&event->item, BURIN_VIRTUAL_EVENT) ||
        burin_virtual_stream(&stream))
        return CU_INVALID_HANDLE;
    event->captured = stream->captured != NULL;
    if (event->captured) /* it makes no node */
        return stream->capture_invalid ? CU_CAPTURE_INVALIDATED : CU_OK;
    struct burin_cu_node *node = burin_virtual_node(WORK_RECORD);
    if (!node)
        return CU_OUT_OF_MEMORY;
    node->mark.event = event;
    event->stream = stream;
    event->place = stream->n_put + 1;
    return burin_virtual_put(stream, node);
}

/* Capturing on more than one stream is not modelled: who waits for one that captures is told
 * so, but for that stream itself. */
CALL(cuStreamWaitEvent,
     NEEDS_CONTEXT,
     (struct burin_cu_stream * stream, struct burin_cu_event *event, unsigned flags),
     (stream, event, flags))
{
    (void)flags;
    if (!event || !burin_virtual_is(&event->item, BURIN_VIRTUAL_EVENT) ||
        burin_virtual_stream(&stream))
        return CU_INVALID_HANDLE;
    if (event->captured || stream->captured)
        return event->captured && stream->captured ? CU_OK : CU_NOT_SUPPORTED;
    if (!event->stream)
        return CU_OK;
    struct burin_cu_node *node = burin_virtual_node(WORK_WAIT);
    if (!node)
        return CU_OUT_OF_MEMORY;
    node->mark.stream = event->stream;
    node->mark.place = event->place;
    return burin_virtual_put(stream, node);
}

static int check_event(struct burin_cu_event *event)
{
    if (!event || !burin_virtual_is(&event->item, BURIN_VIRTUAL_EVENT))
        return CU_INVALID_HANDLE;
    return event->captured ? CU_CAPTURED_EVENT : CU_OK;
}

CALL(cuEventSynchronize, NEEDS_CONTEXT, (struct burin_cu_event * event), (event))
{
    const int result = check_event(event);
    if (!result && event->stream)
        burin_virtual_drain(event->stream, event->place);
    return result ? result : burin_virtual_self()->lost;
}

CALL(cuEventQuery, NEEDS_CONTEXT | NO_CAPTURE, (struct burin_cu_event * event), (event))
{
    const int result = check_event(event);
    if (result || !event->stream)
        return result;
    const bool done = event->stream->n_done >= event->place;
    if (!done)
        burin_virtual_drain(event->stream, event->stream->n_done + 1);
    if (burin_virtual_self()->lost)
        return burin_virtual_self()->lost;
    return done ? CU_OK : CU_NOT_READY;
}

CALL(cuEventElapsedTime,
     NEEDS_CONTEXT,
     (float *ms, struct burin_cu_event *begin, struct burin_cu_event *end),
     (ms, begin, end))
{
    if (check_event(begin) || check_event(end) || begin->untimed || end->untimed ||
        !begin->stream || !end->stream)
        return CU_INVALID_HANDLE;
    if (begin->stream->n_done < begin->place || end->stream->n_done < end->place)
        return CU_NOT_READY;
    *ms = (float)(end->ms - begin->ms);
    return CU_OK;
}
