#include "runtime/text/chat_sandbox.h"

#include "runtime/base/utf8.h"
#include "runtime/text/unicode.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    INSTRUCTIONS = 10000000,
    HOOK_EVERY = 100, /* few enough that what a single one can do at most stays short */
    SECONDS = 10,
    REGION = 32 * 1024
};

/* ---- Limits ------------------------------------------------------------------------ */

static long long processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static struct burin_sandbox *sandbox_of(lua_State *lua)
{
    struct burin_sandbox *sandbox;
    memcpy(&sandbox, lua_getextraspace(lua), sizeof(void *));
    return sandbox;
}

static void check_limits(lua_State *lua, lua_Debug *where)
{
    struct burin_sandbox *sandbox = sandbox_of(lua);
    (void)where;
    sandbox->instructions_left -= HOOK_EVERY;
    if (sandbox->instructions_left < 0)
        sandbox->limit = "it runs for more than 10 million instructions";
    else if (processor_ns() > sandbox->deadline_ns)
        sandbox->limit = "it runs for more than 10 seconds";
    if (sandbox->limit)
        luaL_error(lua, "%s", sandbox->limit);
}

static void *allocate(void *user, void *old, size_t old_bytes, size_t new_bytes)
{
    struct burin_heap *heap = user;

    if (new_bytes == 0) {
        burin_heap_give(heap, old);
        return NULL;
    }
    if (old && new_bytes <= old_bytes)
        return old;
    void *moved = burin_heap_take(heap, new_bytes);
    if (moved && old) {
        memcpy(moved, old, old_bytes);
        burin_heap_give(heap, old);
    }
    return moved;
}

/* ---- What a chunk sees -------------------------------------------------------------- */

/* error(text): the text and no place in the source, for it is meant for the user. */
static int raise(lua_State *lua)
{
    luaL_checkstring(lua, 1);
    lua_settop(lua, 1);
    return lua_error(lua);
}

static int control(lua_State *lua)
{
    luaL_checkstring(lua, 1);
    lua_createtable(lua, 0, 1);
    lua_pushvalue(lua, 1);
    lua_setfield(lua, -2, "control");
    return 1;
}

/* soft(name, item): the name as often as the item has soft tokens. */
static int soft(lua_State *lua)
{
    luaL_checkstring(lua, 1);
    luaL_checktype(lua, 2, LUA_TTABLE);
    lua_settop(lua, 2);
    lua_createtable(lua, 0, 3);
    lua_pushvalue(lua, 1);
    lua_setfield(lua, 3, "control");
    lua_getfield(lua, 2, "n_soft");
    lua_setfield(lua, 3, "n_soft");
    lua_getfield(lua, 2, "number");
    lua_setfield(lua, 3, "item");
    return 1;
}

/* split(text, by): what stands between the places where `by` does. */
static int split(lua_State *lua)
{
    size_t length, by_length;
    const char *at = luaL_checklstring(lua, 1, &length);
    const char *by = luaL_checklstring(lua, 2, &by_length);
    const char *const end = at + length;

    luaL_argcheck(lua, by_length > 0, 2, "it is empty");
    lua_newtable(lua);
    for (lua_Integer i = 1;; i++) {
        const char *found = memmem(at, (size_t)(end - at), by, by_length);
        lua_pushlstring(lua, at, (size_t)((found ? found : end) - at));
        lua_rawseti(lua, -2, i);
        if (!found)
            return 1;
        at = found + by_length;
    }
}

/* keys(x): of a JSON object; nil for anything else. */
static int keys(lua_State *lua)
{
    luaL_checkany(lua, 1);
    if (lua_istable(lua, 1) && lua_getmetatable(lua, 1))
        lua_getfield(lua, -1, "keys");
    else
        lua_pushnil(lua);
    return 1;
}

/* tostring(x): a number that is not whole in its shortest digits, as Python writes it. */
static int to_string(lua_State *lua)
{
    luaL_checkany(lua, 1);
    if (lua_type(lua, 1) != LUA_TNUMBER || lua_isinteger(lua, 1)) {
        luaL_tolstring(lua, 1, NULL);
        return 1;
    }
    const double x = lua_tonumber(lua, 1);
    char digits[40];
    int n = 0;
    do
        snprintf(digits, sizeof digits, "%.*e", n, x);
    while (n++ < 16 && strtod(digits, NULL) != x);

    const char *exponent = strchr(digits, 'e');
    const int power = exponent ? atoi(exponent + 1) : 0;
    if (exponent && power >= -4 && power < 16)
        snprintf(digits, sizeof digits, "%.*f", n - 1 > power ? n - 1 - power : 1, x);
    lua_pushstring(lua, digits);
    return 1;
}

/* Well-formed text alone: messages are checked before they come here. */
static int trim(lua_State *lua)
{
    size_t length;
    const char *begin = luaL_checklstring(lua, 1, &length);
    const char *end = begin + length;

    while (begin < end) {
        const char *next = begin;
        if (!burin_is_strippable(burin_utf8_next(&next)))
            break;
        begin = next;
    }
    while (begin < end && burin_is_strippable(burin_utf8_last(end))) {
        do
            end--;
        while (((unsigned char)*end & 0xC0) == 0x80);
    }
    lua_pushlstring(lua, begin, (size_t)(end - begin));
    return 1;
}

/* A new table with those fields of the table on the top, which it replaces. */
static void keep_fields(lua_State *lua, const char *const *names)
{
    lua_newtable(lua);
    for (; *names; names++) {
        lua_getfield(lua, -2, *names);
        lua_setfield(lua, -2, *names);
    }
    lua_remove(lua, -2);
}

static void push_environment(lua_State *lua)
{
    static const char *const base[] = { "ipairs", "select", "type", NULL };
    static const char *const string[] = { "byte", "format", "len", "lower",
                                          "sub",  "upper",  NULL };
    static const char *const table[] = { "concat", "insert", NULL };

    luaL_requiref(lua, LUA_GNAME, luaopen_base, 0);
    keep_fields(lua, base);
    luaL_requiref(lua, LUA_STRLIBNAME, luaopen_string, 0);
    keep_fields(lua, string);
    lua_pushliteral(lua, ""); /* ("text"):rep() reaches the library through this table */
    lua_getmetatable(lua, -1);
    lua_pushvalue(lua, -3);
    lua_setfield(lua, -2, "__index");
    lua_pop(lua, 2);
    lua_setfield(lua, -2, "string");
    luaL_requiref(lua, LUA_TABLIBNAME, luaopen_table, 0);
    keep_fields(lua, table);
    lua_setfield(lua, -2, "table");
    lua_pushcfunction(lua, raise);
    lua_setfield(lua, -2, "error");
    lua_pushcfunction(lua, control);
    lua_setfield(lua, -2, "control");
    lua_pushcfunction(lua, trim);
    lua_setfield(lua, -2, "trim");
    lua_pushcfunction(lua, soft);
    lua_setfield(lua, -2, "soft");
    lua_pushcfunction(lua, split);
    lua_setfield(lua, -2, "split");
    lua_pushcfunction(lua, keys);
    lua_setfield(lua, -2, "keys");
    lua_pushcfunction(lua, to_string);
    lua_setfield(lua, -2, "tostring");
    lua_pushlightuserdata(lua, NULL); /* what null is in a JSON text */
    lua_setfield(lua, -2, "null");
}

/* ---- The sandbox ---------------------------------------------------------------------- */

enum burin_status burin_sandbox_open(
        struct burin_sandbox *sandbox, size_t bytes, struct burin_error *err)
{
    *sandbox = (struct burin_sandbox){
        .instructions_left = INSTRUCTIONS,
        .refusal = BURIN_EFORMAT,
    };
    sandbox->heap = (struct burin_heap){
        .arena = &sandbox->arena,
        .region = REGION,
        .limit = bytes,
    };
    sandbox->lua = lua_newstate(allocate, &sandbox->heap);
    if (!sandbox->lua) {
        burin_sandbox_close(sandbox);
        return burin_fail(err, BURIN_ENOMEM, "no memory to run the chat function");
    }
    memcpy(lua_getextraspace(sandbox->lua), &sandbox, sizeof(void *));
    lua_sethook(sandbox->lua, check_limits, LUA_MASKCOUNT, HOOK_EVERY);
    return BURIN_OK;
}

void burin_sandbox_close(struct burin_sandbox *sandbox)
{
    if (sandbox->lua)
        lua_close(sandbox->lua);
    burin_arena_close(&sandbox->arena);
    *sandbox = (struct burin_sandbox){ 0 };
}

int burin_sandbox_refuse(lua_State *lua, enum burin_status status, const char *format, ...)
{
    va_list args;
    sandbox_of(lua)->refusal = status;
    va_start(args, format);
    lua_pushvfstring(lua, format, args);
    va_end(args);
    lua_error(lua);
    abort(); /* lua_error does not return, but does not say so */
}

void burin_sandbox_load(lua_State *lua, const char *source, const char *name)
{
    lua_pushfstring(lua, "=%s", name);
    if (luaL_loadbufferx(lua, source, strlen(source), lua_tostring(lua, -1), "t"))
        lua_error(lua);
    push_environment(lua);
    lua_setupvalue(lua, -2, 1);
    lua_call(lua, 0, 1);
    lua_remove(lua, -2);
}

enum burin_status burin_sandbox_run(
        struct burin_sandbox *sandbox,
        lua_CFunction body,
        void *user,
        struct burin_error *err)
{
    lua_State *lua = sandbox->lua;

    sandbox->deadline_ns = processor_ns() + SECONDS * 1000000000LL;
    lua_pushcfunction(lua, body);
    lua_pushlightuserdata(lua, user);
    const int result = lua_pcall(lua, 1, 0, 0);
    if (result == LUA_OK)
        return BURIN_OK;

    const char *message = lua_tostring(lua, -1);
    enum burin_status status = sandbox->refusal;
    if (result == LUA_ERRMEM)
        status = burin_fail(
                err, BURIN_ELIMIT, "the chat function needs more than %zu bytes",
                sandbox->heap.limit);
    else if (sandbox->limit)
        status = burin_fail(err, BURIN_ELIMIT, "the chat function is stopped: %s", message);
    else
        burin_fail(err, status, "%s", message ? message : "the chat function failed");
    lua_pop(lua, 1);
    return status;
}
