/* runtime/text/chat_sandbox.h -- A Lua state that can compute and nothing else.
 *
 * A chunk sees control, soft, trim, split, keys, null, error, ipairs, select, tostring, type,
 * and a few functions of table and string (chat.h). It cannot catch an error, load code, reach a file, or go on for long.
 *
 * Memory   All of it in the sandbox's own arena, until burin_sandbox_close().
 * Threads  One thread at a time. */
#ifndef BURIN_TEXT_CHAT_SANDBOX_H
#define BURIN_TEXT_CHAT_SANDBOX_H

#include "runtime/base/arena.h"
#include "runtime/base/span.h"
#include "runtime/base/status.h"
#include "runtime/text/heap.h"

#include <lua.h>

struct burin_sandbox {
    lua_State *lua;
    struct burin_arena arena;
    struct burin_heap heap;
    long instructions_left;
    long long deadline_ns; /* of this thread's processor time */
    const char *limit;     /* what ran out, or NULL */
    enum burin_status refusal;
};

/* `bytes` is what the state may take. It must stay where it is. */
enum burin_status burin_sandbox_open(
        struct burin_sandbox *sandbox, size_t bytes, struct burin_error *err);

/* Closing a zeroed or closed sandbox does nothing. */
void burin_sandbox_close(struct burin_sandbox *sandbox);

/* Call `body(lua)` with `user` as its light userdata argument. What it raises is the message:
 * BURIN_EFORMAT or what the body refused with, BURIN_ELIMIT where instructions, time or memory
 * ran out. */
enum burin_status burin_sandbox_run(
        struct burin_sandbox *sandbox,
        lua_CFunction body,
        void *user,
        struct burin_error *err);

/* Within a body: end with this status and text. */
int burin_sandbox_refuse(lua_State *lua, enum burin_status status, const char *format, ...)
        __attribute__((noreturn));

/* Within a body: run `source` and leave what it returns on the stack, one value. */
void burin_sandbox_load(lua_State *lua, const char *source, const char *name);

#endif
