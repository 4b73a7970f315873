/* Capture of a stream, and graphs. */
#include "runtime/device/virtual/state.h"

CALL(cuStreamBeginCapture_v2,
     NEEDS_CONTEXT,
     (struct burin_cu_stream * stream, int mode),
     (stream, mode))
{
    struct burin_virtual_process *self = burin_virtual_self();
    if (!stream || stream == burin_virtual_current()->stream)
        return CU_CAPTURE_UNSUPPORTED; /* the default one cannot be captured */
    if (burin_virtual_stream(&stream))
        return CU_INVALID_HANDLE;
    if (mode < 0 || mode > CAPTURE_RELAXED)
        return CU_INVALID_VALUE;
    if (stream->captured)
        return CU_ILLEGAL_STATE;
    stream->captured = BURIN_TAKE(&self->machine->arena, 1, struct burin_virtual_nodes);
    if (!stream->captured)
        return CU_OUT_OF_MEMORY;
    stream->captured->n_owners = 1;
    stream->capture_mode = mode;
    stream->capture_invalid = false;
    stream->capture_thread = pthread_self();
    self->n_capturing++;
    return CU_OK;
}

/* It ends also where it answers an error. */
CALL(cuStreamEndCapture,
     NEEDS_CONTEXT | GIVES_BACK,
     (struct burin_cu_stream * stream, struct burin_cu_graph **graph),
     (stream, graph))
{
    *graph = NULL;
    if (!stream || burin_virtual_stream(&stream))
        return CU_INVALID_HANDLE;
    if (!stream->captured)
        return CU_ILLEGAL_STATE;
    struct burin_virtual_nodes *nodes = stream->captured;
    const bool invalid = stream->capture_invalid || burin_virtual_self()->machine->answer;
    stream->captured = NULL;
    stream->capture_invalid = false;
    burin_virtual_self()->n_capturing--;

    struct burin_cu_graph *new = NULL;
    if (!invalid)
        new = burin_virtual_new(BURIN_VIRTUAL_GRAPH, sizeof *new, burin_virtual_current());
    if (!new) {
        burin_virtual_release_nodes(nodes);
        return invalid ? CU_CAPTURE_INVALIDATED : CU_OUT_OF_MEMORY;
    }
    new->nodes = nodes;
    *graph = new;
    return CU_OK;
}

static bool is_graph(const struct burin_cu_graph *graph)
{
    return graph && burin_virtual_is(&graph->item, BURIN_VIRTUAL_GRAPH);
}

static bool is_exec(const struct burin_cu_exec *exec)
{
    return exec && burin_virtual_is(&exec->item, BURIN_VIRTUAL_EXEC);
}

CALL(cuGraphGetNodes,
     NEEDS_INIT,
     (struct burin_cu_graph * graph, struct burin_cu_node **nodes, size_t *n),
     (graph, nodes, n))
{
    if (!is_graph(graph))
        return CU_INVALID_HANDLE;
    if (nodes) {
        size_t i = 0;
        for (struct burin_cu_node *node = graph->nodes->first; node && i < *n;
             node = node->next)
            nodes[i++] = node;
        *n = i;
    } else {
        *n = graph->nodes->n;
    }
    return CU_OK;
}

CALL(cuGraphDestroy, NEEDS_INIT | GIVES_BACK, (struct burin_cu_graph * graph), (graph))
{
    if (!is_graph(graph))
        return CU_INVALID_HANDLE;
    burin_virtual_release_nodes(graph->nodes);
    burin_virtual_drop(&graph->item);
    return CU_OK;
}

/* The stack of the kernel that needs most. */
static int need_local(
        struct burin_cu_context *context, const struct burin_virtual_nodes *nodes)
{
    size_t most = 0;
    bool any = false;
    for (const struct burin_cu_node *node = nodes->first; node; node = node->next)
        if (node->work == WORK_LAUNCH) {
            const size_t bytes = (size_t)node->run.kernel.local_bytes;
            most = bytes > most ? bytes : most;
            any = true;
        }
    if (most < context->limits[CU_LIMIT_STACK])
        most = context->limits[CU_LIMIT_STACK];
    return any ? burin_virtual_need_local(context, most) : CU_OK;
}

CALL(cuGraphInstantiateWithFlags,
     NEEDS_CONTEXT | NO_CAPTURE,
     (struct burin_cu_exec * *exec, struct burin_cu_graph *graph, unsigned long long flags),
     (exec, graph, flags))
{
    const struct burin_virtual *machine = burin_virtual_self()->machine;
    struct burin_cu_context *context = burin_virtual_current();
    if (!is_graph(graph))
        return CU_INVALID_HANDLE;
    if (flags)
        return CU_NOT_SUPPORTED;
    const size_t bytes = burin_virtual_rounded(
            machine,
            machine->options.graph_bytes + machine->options.node_bytes * graph->nodes->n);
    if (need_local(context, graph->nodes) || burin_virtual_take(context->card, bytes))
        return CU_OUT_OF_MEMORY;
    struct burin_cu_exec *new = burin_virtual_new(BURIN_VIRTUAL_EXEC, sizeof *new, context);
    if (!new) {
        burin_virtual_give(context->card, bytes);
        return CU_OUT_OF_MEMORY;
    }
    new->item.bytes = bytes;
    new->nodes = graph->nodes;
    new->nodes->n_owners++;
    *exec = new;
    return CU_OK;
}

CALL(cuGraphExecDestroy, NEEDS_CONTEXT | GIVES_BACK, (struct burin_cu_exec * exec), (exec))
{
    if (!is_exec(exec))
        return CU_INVALID_HANDLE;
    burin_virtual_drain_all();
    burin_virtual_release_nodes(exec->nodes);
    burin_virtual_give(exec->item.context->card, exec->item.bytes);
    burin_virtual_drop(&exec->item);
    return CU_OK;
}

/* Its memory was taken when it was instantiated. */
CALL(cuGraphUpload,
     NEEDS_CONTEXT,
     (struct burin_cu_exec * exec, struct burin_cu_stream *stream),
     (exec, stream))
{
    if (!is_exec(exec) || burin_virtual_stream(&stream))
        return CU_INVALID_HANDLE;
    return burin_virtual_no_capture(stream);
}

CALL(cuGraphLaunch,
     NEEDS_CONTEXT,
     (struct burin_cu_exec * exec, struct burin_cu_stream *stream),
     (exec, stream))
{
    if (!is_exec(exec) || burin_virtual_stream(&stream))
        return CU_INVALID_HANDLE;
    if (burin_virtual_no_capture(stream)) /* a graph within a graph is not modelled */
        return CU_CAPTURE_UNSUPPORTED;
    struct burin_cu_node *node = burin_virtual_node(WORK_GRAPH);
    if (!node)
        return CU_OUT_OF_MEMORY;
    node->exec = exec;
    burin_virtual_self()->machine->counts.graphs++;
    return burin_virtual_put(stream, node);
}
