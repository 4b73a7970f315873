/* Modules, their functions, and launches. */
#include "runtime/device/virtual/state.h"

#include <string.h>

enum { MAX_THREADS = 1024, MAX_BLOCKS_YZ = 65535, SHARED_BYTES = 48 * 1024 };

/* Code lies in whole granules, of all modules together. */
static int resize_code(struct burin_cu_context *context, size_t bytes)
{
    const size_t whole = burin_virtual_rounded(burin_virtual_self()->machine, bytes);
    if (whole > context->code_taken) {
        if (burin_virtual_take(context->card, whole - context->code_taken))
            return CU_OUT_OF_MEMORY;
    } else {
        burin_virtual_give(context->card, context->code_taken - whole);
    }
    context->code_bytes = bytes;
    context->code_taken = whole;
    return CU_OK;
}

CALL(cuModuleLoadData,
     NEEDS_CONTEXT | NO_CAPTURE,
     (struct burin_cu_module * *module, const void *image),
     (module, image))
{
    const struct burin_virtual *machine = burin_virtual_self()->machine;
    const size_t bytes = machine->options.module_bytes;
    struct burin_cu_context *context = burin_virtual_current();
    if (!image)
        return CU_INVALID_IMAGE;
    if (resize_code(context, context->code_bytes + bytes))
        return CU_OUT_OF_MEMORY;
    struct burin_cu_module *new =
            burin_virtual_new(BURIN_VIRTUAL_MODULE, sizeof *new, context);
    int result = new ? CU_OK : CU_OUT_OF_MEMORY;
    if (new && machine->body)
        result = machine->body->load(machine->body->self, image, &new->loaded);
    if (result) {
        if (new)
            burin_virtual_drop(&new->item);
        resize_code(context, context->code_bytes - bytes);
        return result;
    }
    new->item.bytes = bytes;
    *module = new;
    return CU_OK;
}

CALL(cuModuleUnload,
     NEEDS_CONTEXT | NO_CAPTURE | GIVES_BACK,
     (struct burin_cu_module * module),
     (module))
{
    const struct burin_virtual_body *body = burin_virtual_self()->machine->body;
    if (!module || !burin_virtual_is(&module->item, BURIN_VIRTUAL_MODULE))
        return CU_INVALID_HANDLE;
    burin_virtual_drain_all();
    if (body)
        body->unload(body->self, module->loaded);
    struct burin_cu_context *context = module->item.context;
    resize_code(context, context->code_bytes - module->item.bytes);
    burin_virtual_drop(&module->item);
    return CU_OK;
}

static int local_bytes(const struct burin_virtual *machine, const char *name, int otherwise)
{
    for (const struct burin_virtual_local *local = machine->locals; local;
         local = local->next)
        if (strcmp(local->kernel, name) == 0)
            return local->bytes;
    return otherwise;
}

CALL(cuModuleGetFunction,
     NEEDS_CONTEXT,
     (struct burin_cu_function * *function,
      struct burin_cu_module *module,
      const char *name),
     (function, module, name))
{
    struct burin_virtual *machine = burin_virtual_self()->machine;
    const struct burin_virtual_body *body = machine->body;
    if (!module || !burin_virtual_is(&module->item, BURIN_VIRTUAL_MODULE))
        return CU_INVALID_HANDLE;
    if (!name || !*name)
        return CU_NOT_FOUND;
    struct burin_virtual_kernel kernel = { .local_bytes = machine->options.local_bytes,
                                           .registers = 32 };
    if (body) {
        kernel = (struct burin_virtual_kernel){ 0 };
        const int result = body->kernel(body->self, module->loaded, name, &kernel);
        if (result)
            return result;
    }
    kernel.local_bytes = local_bytes(machine, name, kernel.local_bytes);
    if (!kernel.max_threads)
        kernel.max_threads = MAX_THREADS;
    struct burin_cu_function *new =
            BURIN_TAKE(&machine->arena, 1, struct burin_cu_function);
    if (!new)
        return CU_OUT_OF_MEMORY;
    *new = (struct burin_cu_function){
        .module = module,
        .kernel = kernel,
        .max_dynamic_shared = SHARED_BYTES - kernel.static_shared_bytes,
    };
    *function = new;
    return CU_OK;
}

/* ---- Functions ------------------------------------------------------------------------------ */

static bool is_function(const struct burin_cu_function *function)
{
    return function && burin_virtual_is(&function->module->item, BURIN_VIRTUAL_MODULE);
}

CALL(cuFuncGetAttribute,
     NEEDS_CONTEXT,
     (int *value, int attribute, struct burin_cu_function *function),
     (value, attribute, function))
{
    if (!is_function(function))
        return CU_INVALID_HANDLE;
    const struct burin_virtual_kernel *kernel = &function->kernel;
    switch (attribute) {
    case CU_FUNCTION_MAX_THREADS:
        *value = kernel->max_threads;
        return CU_OK;
    case CU_FUNCTION_STATIC_SHARED_BYTES:
        *value = kernel->static_shared_bytes;
        return CU_OK;
    case CU_FUNCTION_LOCAL_BYTES:
        *value = kernel->local_bytes;
        return CU_OK;
    case CU_FUNCTION_REGISTERS:
        *value = kernel->registers;
        return CU_OK;
    case CU_FUNCTION_MAX_DYNAMIC_SHARED_BYTES:
        *value = function->max_dynamic_shared;
        return CU_OK;
    default:
        return CU_INVALID_VALUE;
    }
}

CALL(cuFuncSetAttribute,
     NEEDS_CONTEXT,
     (struct burin_cu_function * function, int attribute, int value),
     (function, attribute, value))
{
    if (!is_function(function))
        return CU_INVALID_HANDLE;
    const int most = burin_virtual_shared_opt_in(burin_virtual_current()->card) -
                     function->kernel.static_shared_bytes;
    if (attribute != CU_FUNCTION_MAX_DYNAMIC_SHARED_BYTES || value < 0 || value > most)
        return CU_INVALID_VALUE;
    function->max_dynamic_shared = value;
    return CU_OK;
}

/* Stacks of all threads that may run at once. They never shrink by themselves. */
int burin_virtual_need_local(struct burin_cu_context *context, size_t bytes)
{
    const size_t all = burin_virtual_local_bytes(context, bytes);
    if (all <= context->local_taken)
        return CU_OK;
    if (burin_virtual_take(context->card, all - context->local_taken))
        return CU_OUT_OF_MEMORY;
    context->local_taken = all;
    burin_virtual_self()->machine->counts.obtained++;
    return CU_OK;
}

static bool shape_is_right(
        const struct burin_virtual_launch *launch, const struct burin_cu_function *function)
{
    unsigned long long threads = 1;
    for (int i = 0; i < 3; i++) {
        if (!launch->blocks[i] || !launch->threads[i] || launch->threads[i] > MAX_THREADS)
            return false;
        threads *= launch->threads[i];
    }
    return launch->blocks[0] <= INT32_MAX && launch->blocks[1] <= MAX_BLOCKS_YZ &&
           launch->blocks[2] <= MAX_BLOCKS_YZ &&
           threads <= (unsigned long long)function->kernel.max_threads &&
           launch->shared_bytes <= (unsigned)function->max_dynamic_shared;
}

/* Arguments are copied here: the caller's may be gone when the kernel runs. */
CALL(cuLaunchKernel,
     NEEDS_CONTEXT,
     (struct burin_cu_function * function,
      unsigned grid_x,
      unsigned grid_y,
      unsigned grid_z,
      unsigned block_x,
      unsigned block_y,
      unsigned block_z,
      unsigned shared_bytes,
      struct burin_cu_stream *stream,
      void **arguments,
      void **extra),
     (function,
      grid_x,
      grid_y,
      grid_z,
      block_x,
      block_y,
      block_z,
      shared_bytes,
      stream,
      arguments,
      extra))
{
    struct burin_virtual_launch launch = { .blocks = { grid_x, grid_y, grid_z },
                                           .threads = { block_x, block_y, block_z },
                                           .shared_bytes = shared_bytes };
    if (!is_function(function) || burin_virtual_stream(&stream))
        return CU_INVALID_HANDLE;
    if (extra || !shape_is_right(&launch, function))
        return CU_INVALID_VALUE;
    const struct burin_virtual_kernel *kernel = &function->kernel;
    for (int i = 0; i < kernel->n_arguments; i++)
        memcpy(&launch.arguments[i], arguments[i], (size_t)kernel->argument_bytes[i]);

    struct burin_cu_context *context = burin_virtual_current();
    const size_t local = (size_t)kernel->local_bytes;
    const size_t limit = context->limits[CU_LIMIT_STACK];
    if (!stream->captured &&
        burin_virtual_need_local(context, local > limit ? local : limit))
        return CU_OUT_OF_MEMORY;
    struct burin_cu_node *node = burin_virtual_node(WORK_LAUNCH);
    if (!node)
        return CU_OUT_OF_MEMORY;
    node->run.launch = launch;
    node->run.kernel = *kernel;
    burin_virtual_self()->machine->counts.launches++;
    return burin_virtual_put(stream, node);
}
