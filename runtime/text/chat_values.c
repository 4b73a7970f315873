#include "runtime/text/chat_values.h"

#include "runtime/base/json_scan.h"
#include "runtime/text/chat_sandbox.h"

#include <ctype.h>
#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const burin_part_names[BURIN_N_PART_KINDS] = {
    [BURIN_PART_TEXT] = "text",
    [BURIN_PART_IMAGE] = "image",
    [BURIN_PART_VIDEO] = "video",
    [BURIN_PART_AUDIO] = "audio",
};

/* ---- JSON ---------------------------------------------------------------------------- */

static void check(lua_State *lua, enum burin_status status, const struct burin_error *err)
{
    if (status)
        burin_sandbox_refuse(lua, status, "%s", err->message);
}

/* Compare two keys as jinja's dictsort does: small letters and capitals are the same. */
static int compare_keys(const char *a, const char *b)
{
    while (*a && tolower((unsigned char)*a) == tolower((unsigned char)*b)) {
        a++;
        b++;
    }
    return tolower((unsigned char)*a) - tolower((unsigned char)*b);
}

/* Put the key on the top into the sorted list of keys at `keys`, behind its equals. Pops it. */
static void insert_key(lua_State *lua, int keys)
{
    lua_Integer i = (lua_Integer)lua_rawlen(lua, keys);
    for (; i > 0; i--) {
        lua_rawgeti(lua, keys, i);
        if (compare_keys(lua_tostring(lua, -1), lua_tostring(lua, -2)) <= 0) {
            lua_pop(lua, 1);
            break;
        }
        lua_rawseti(lua, keys, i + 1);
    }
    lua_rawseti(lua, keys, i + 1);
}

static void push_value(lua_State *lua, struct burin_json_scan *scan);

enum { MOST_KEYS = 1000 };

/* An object is a table whose metatable holds its keys. */
static void push_object(lua_State *lua, struct burin_json_scan *scan)
{
    struct burin_error err = { 0 };
    struct burin_span key;
    bool more;

    lua_newtable(lua);
    lua_newtable(lua); /* the metatable */
    lua_newtable(lua); /* the keys */
    const int keys = lua_gettop(lua), object = keys - 2;
    check(lua, burin_json_enter(scan, '{', &err), &err);
    for (;;) {
        check(lua, burin_json_member(scan, &key, &more, &err), &err);
        if (!more)
            break;
        lua_pushlstring(lua, key.at, key.length);
        lua_pushvalue(lua, -1);
        if (lua_rawget(lua, object) == LUA_TNIL) {
            if (lua_rawlen(lua, keys) == MOST_KEYS)
                burin_sandbox_refuse(
                        lua, BURIN_ELIMIT, "%s: an object has more than %d keys",
                        scan->name, MOST_KEYS);
            lua_pushvalue(lua, -2);
            insert_key(lua, keys);
        }
        lua_pop(lua, 1);
        push_value(lua, scan);
        lua_rawset(lua, object);
    }
    lua_setfield(lua, -2, "keys");
    lua_setmetatable(lua, -2);
}

static void push_list(lua_State *lua, struct burin_json_scan *scan)
{
    struct burin_error err = { 0 };
    bool more;

    lua_newtable(lua);
    check(lua, burin_json_enter(scan, '[', &err), &err);
    for (lua_Integer i = 1;; i++) {
        check(lua, burin_json_element(scan, &more, &err), &err);
        if (!more)
            return;
        push_value(lua, scan);
        lua_rawseti(lua, -2, i);
    }
}

static void push_number(lua_State *lua, const char *text, size_t length)
{
    char copy[64];
    char *end;
    const size_t n = length < sizeof copy - 1 ? length : sizeof copy - 1;
    memcpy(copy, text, n);
    copy[n] = '\0';
    errno = 0;
    const long long whole = strtoll(copy, &end, 10);
    if (*end == '\0' && errno == 0)
        lua_pushinteger(lua, whole);
    else
        lua_pushnumber(lua, strtod(copy, NULL));
}

static void push_value(lua_State *lua, struct burin_json_scan *scan)
{
    struct burin_error err = { 0 };
    struct burin_span text;
    const char first = burin_json_peek(scan);

    luaL_checkstack(lua, 8, "JSON");
    if (first == '{') {
        push_object(lua, scan);
        return;
    }
    if (first == '[') {
        push_list(lua, scan);
        return;
    }
    if (first == '"') {
        check(lua, burin_json_take_text(scan, &text, &err), &err);
        lua_pushlstring(lua, text.at, text.length);
        return;
    }
    const char *at = scan->at;
    check(lua, burin_json_skip(scan, &err), &err);
    if (first == 't' || first == 'f')
        lua_pushboolean(lua, first == 't');
    else if (first == 'n')
        lua_pushlightuserdata(lua, NULL);
    else
        push_number(lua, at, (size_t)(scan->at - at));
}

void burin_push_json(lua_State *lua, struct burin_span json, const char *what)
{
    struct burin_json_scan scan;
    struct burin_error err = { 0 };
    /* Reading decodes in place. */
    char *copy = lua_newuserdatauv(lua, json.length + 1, 0);
    memcpy(copy, json.at, json.length);
    check(lua, burin_json_scan_begin(&scan, what, copy, json.length, &err), &err);
    push_value(lua, &scan);
    check(lua, burin_json_end(&scan, &err), &err);
    lua_remove(lua, -2);
}

/* ---- Messages -------------------------------------------------------------------------- */

static void set_text(lua_State *lua, const char *field, struct burin_span text)
{
    lua_pushlstring(lua, text.length ? text.at : "", text.length);
    lua_setfield(lua, -2, field);
}

static void push_items(lua_State *lua, const struct burin_part *part, int *n_items)
{
    lua_createtable(lua, part->n_items, 0);
    for (int i = 0; i < part->n_items; i++) {
        lua_createtable(lua, 0, 3);
        lua_pushinteger(lua, part->n_soft[i]);
        lua_setfield(lua, -2, "n_soft");
        lua_pushinteger(lua, (*n_items)++);
        lua_setfield(lua, -2, "number");
        if (part->seconds) {
            lua_pushnumber(lua, part->seconds[i]);
            lua_setfield(lua, -2, "seconds");
        }
        lua_rawseti(lua, -2, i + 1);
    }
}

static void push_parts(lua_State *lua, const struct burin_message *message, int *n_items)
{
    lua_createtable(lua, message->n_parts, 0);
    for (int i = 0; i < message->n_parts; i++) {
        const struct burin_part *part = &message->parts[i];
        lua_createtable(lua, 0, 2);
        lua_pushstring(lua, burin_part_names[part->kind]);
        lua_setfield(lua, -2, "type");
        if (part->kind == BURIN_PART_TEXT) {
            set_text(lua, "text", part->text);
        } else {
            push_items(lua, part, n_items);
            lua_setfield(lua, -2, "items");
        }
        lua_rawseti(lua, -2, i + 1);
    }
}

void burin_push_messages(
        lua_State *lua, const struct burin_message *messages, int n_messages, int *n_items)
{
    *n_items = 0;
    lua_createtable(lua, n_messages, 0);
    for (int i = 0; i < n_messages; i++) {
        const struct burin_message *message = &messages[i];
        lua_createtable(lua, 0, 2);
        set_text(lua, "role", burin_span_of(message->role));
        if (message->n_parts) {
            push_parts(lua, message, n_items);
            lua_setfield(lua, -2, "content");
        } else {
            set_text(lua, "content", message->content);
        }
        if (message->reasoning.length)
            set_text(lua, "reasoning", message->reasoning);
        if (message->tool_call_id)
            set_text(lua, "tool_call_id", burin_span_of(message->tool_call_id));
        if (message->name)
            set_text(lua, "name", burin_span_of(message->name));
        if (message->tool_calls.length) {
            char what[48];
            snprintf(what, sizeof what, "tool_calls of message %d", i + 1);
            burin_push_json(lua, message->tool_calls, what);
            lua_setfield(lua, -2, "tool_calls");
        }
        lua_rawseti(lua, -2, i + 1);
    }
}
