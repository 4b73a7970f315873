#include "runtime/text/chat.h"

#include "runtime/base/utf8.h"
#include "runtime/text/chat_sandbox.h"
#include "runtime/text/unicode.h"

#include <lauxlib.h>
#include <string.h>

enum { SANDBOX_BYTES = 64 * 1024 * 1024, BYTES_A_BYTE = 16 };

/* ---- In the sandbox -------------------------------------------------------------------- */

/* Replace the table of formats on the top by the one whose name begins the variant's. */
static void choose_format(lua_State *lua, const struct burin_chat *chat)
{
    size_t best = 0;

    if (!lua_istable(lua, -1))
        luaL_error(lua, "%s: a table of formats is meant", chat->name);
    lua_pushnil(lua); /* the format */
    lua_pushnil(lua); /* the key to go on from */
    while (lua_next(lua, -3)) {
        const char *name = lua_type(lua, -2) == LUA_TSTRING ? lua_tostring(lua, -2) : "";
        const size_t length = strlen(name);
        if (length > best && strncmp(chat->variant, name, length) == 0 &&
            lua_istable(lua, -1)) {
            best = length;
            lua_copy(lua, -1, -3);
        }
        lua_pop(lua, 1);
    }
    if (best == 0)
        burin_sandbox_refuse(
                lua, BURIN_EMISMATCH, "%s has no format for %s", chat->name, chat->variant);
    lua_remove(lua, -2);
}

struct render {
    const struct burin_chat *chat;
    const struct burin_message *messages;
    int n_messages;
    struct burin_chat_options options;
    struct burin_arena *arena;
    struct burin_piece *pieces;
    int n_pieces;
    bool no_memory;
};

static void push_messages(lua_State *lua, const struct render *job)
{
    lua_createtable(lua, job->n_messages, 0);
    for (int i = 0; i < job->n_messages; i++) {
        const struct burin_message *message = &job->messages[i];
        lua_createtable(lua, 0, 2);
        lua_pushstring(lua, message->role);
        lua_setfield(lua, -2, "role");
        lua_pushlstring(
                lua, message->content.length ? message->content.at : "",
                message->content.length);
        lua_setfield(lua, -2, "content");
        lua_rawseti(lua, -2, i + 1);
    }
}

/* A text, or the name in a control token; NULL for anything else. */
static const char *piece_text(lua_State *lua, int index, size_t *length, bool *is_control)
{
    *is_control = lua_istable(lua, index);
    if (*is_control) {
        lua_getfield(lua, index, "control");
        lua_replace(lua, index);
    }
    return lua_type(lua, index) == LUA_TSTRING ? lua_tolstring(lua, index, length) : NULL;
}

/* Adjacent texts become one piece: tokens must not depend on where a format cuts its text. */
static void take_pieces(lua_State *lua, struct render *job)
{
    if (!lua_istable(lua, -1))
        luaL_error(lua, "%s: render returned no list of pieces", job->chat->name);

    const int list = lua_gettop(lua);
    const size_t n = lua_rawlen(lua, list);
    size_t bytes = 0;
    for (size_t i = 1; i <= n; i++) {
        size_t length = 0;
        bool is_control;
        lua_rawgeti(lua, list, (lua_Integer)i);
        if (!piece_text(lua, list + 1, &length, &is_control))
            luaL_error(
                    lua, "%s: piece %d is no text and no control token", job->chat->name,
                    (int)i);
        bytes += length + 1;
        lua_settop(lua, list);
    }

    char *text = burin_arena_take(job->arena, bytes + 1, 1, 1);
    job->pieces = BURIN_TAKE(job->arena, n + 1, struct burin_piece);
    job->no_memory = !text || !job->pieces;
    for (size_t i = 1; i <= n && !job->no_memory; i++) {
        size_t length = 0;
        bool is_control;
        lua_rawgeti(lua, list, (lua_Integer)i);
        const char *from = piece_text(lua, list + 1, &length, &is_control);
        struct burin_piece *last = job->n_pieces ? &job->pieces[job->n_pieces - 1] : NULL;
        memcpy(text, from, length);
        if (last && !last->control && !is_control)
            last->text.length += length;
        else if (length || is_control)
            job->pieces[job->n_pieces++] =
                    (struct burin_piece){ { text, length }, is_control };
        text += length;
        lua_settop(lua, list);
    }
}

static int render(lua_State *lua)
{
    struct render *job = lua_touserdata(lua, 1);

    burin_sandbox_load(lua, job->chat->source, job->chat->name);
    choose_format(lua, job->chat);
    if (lua_getfield(lua, -1, "render") != LUA_TFUNCTION)
        luaL_error(lua, "%s: the format has no render", job->chat->name);
    push_messages(lua, job);
    lua_createtable(lua, 0, 2);
    lua_pushboolean(lua, job->options.add_generation_prompt);
    lua_setfield(lua, -2, "add_generation_prompt");
    lua_pushstring(lua, job->options.date);
    lua_setfield(lua, -2, "date");
    lua_call(lua, 2, 1);
    take_pieces(lua, job);
    return 0;
}

static enum burin_status check_text(
        int number, const char *what, struct burin_span text, struct burin_error *err)
{
    const size_t valid = burin_utf8_valid(text, NULL);
    if (valid == text.length)
        return BURIN_OK;
    return burin_fail(
            err, BURIN_EFORMAT,
            "the %s of message %d is not UTF-8: byte 0x%02x at offset %zu", what, number,
            (unsigned)(unsigned char)text.at[valid], valid);
}

enum burin_status burin_chat_render(
        const struct burin_chat *chat,
        const struct burin_message *messages,
        int n_messages,
        struct burin_chat_options options,
        struct burin_arena *arena,
        struct burin_piece **pieces,
        int *n_pieces,
        struct burin_error *err)
{
    struct render job = {
        .chat = chat,
        .messages = messages,
        .n_messages = n_messages,
        .options = options,
        .arena = arena,
    };
    struct burin_sandbox sandbox = { 0 };
    enum burin_status status = BURIN_OK;
    size_t bytes = 0;

    *pieces = NULL;
    *n_pieces = 0;
    for (int i = 0; i < n_messages && !status; i++) {
        bytes += messages[i].content.length;
        status = check_text(i + 1, "role", burin_span_of(messages[i].role), err);
        if (!status)
            status = check_text(i + 1, "content", messages[i].content, err);
    }
    if (!status)
        status = burin_sandbox_open(&sandbox, SANDBOX_BYTES + BYTES_A_BYTE * bytes, err);
    if (!status)
        status = burin_sandbox_run(&sandbox, render, &job, err);
    if (!status && job.no_memory)
        status = burin_fail(err, BURIN_ENOMEM, "no memory for the text of a chat");
    burin_sandbox_close(&sandbox);
    if (!status) {
        *pieces = job.pieces;
        *n_pieces = job.n_pieces;
    }
    return status;
}

/* ---- Stops ------------------------------------------------------------------------------ */

struct stops {
    const struct burin_chat *chat;
    const struct burin_tokenizer *tokenizer;
    int32_t *ids;
    int n;
};

static int read_stops(lua_State *lua)
{
    struct stops *job = lua_touserdata(lua, 1);

    burin_sandbox_load(lua, job->chat->source, job->chat->name);
    choose_format(lua, job->chat);
    if (lua_getfield(lua, -1, "stop") != LUA_TTABLE || lua_rawlen(lua, -1) == 0)
        luaL_error(lua, "%s: the format has no list of stops", job->chat->name);
    const lua_Unsigned n = lua_rawlen(lua, -1);
    for (lua_Unsigned i = 1; i <= n && job->n < BURIN_CHAT_MAX_STOPS; i++) {
        size_t length;
        lua_rawgeti(lua, -1, (lua_Integer)i);
        const char *name = luaL_checklstring(lua, -1, &length);
        const int32_t id =
                burin_token_named(job->tokenizer, (struct burin_span){ name, length });
        if (id < 0)
            burin_sandbox_refuse(
                    lua, BURIN_EMISMATCH, "the vocabulary lacks %s, which ends an answer",
                    name);
        job->ids[job->n++] = id;
        lua_pop(lua, 1);
    }
    return 0;
}

enum burin_status burin_chat_stops(
        const struct burin_chat *chat,
        const struct burin_tokenizer *tokenizer,
        int32_t stops[BURIN_CHAT_MAX_STOPS],
        int *n_stops,
        struct burin_error *err)
{
    struct stops job = { .chat = chat, .tokenizer = tokenizer, .ids = stops };
    struct burin_sandbox sandbox = { 0 };
    enum burin_status status = burin_sandbox_open(&sandbox, SANDBOX_BYTES, err);
    if (!status)
        status = burin_sandbox_run(&sandbox, read_stops, &job, err);
    burin_sandbox_close(&sandbox);
    *n_stops = status ? 0 : job.n;
    return status;
}

/* ---- Pieces to ids ------------------------------------------------------------------------ */

/* What is left of a text beside control tokens that take white space. */
static struct burin_span strip(struct burin_span text, bool at_begin, bool at_end)
{
    while (at_begin && text.length) {
        const char *next = text.at;
        if (!burin_is_space(burin_utf8_next(&next)))
            break;
        text.length -= (size_t)(next - text.at);
        text.at = next;
    }
    while (at_end && text.length &&
           burin_is_space(burin_utf8_last(text.at + text.length))) {
        do
            text.length--;
        while (((unsigned char)text.at[text.length] & 0xC0) == 0x80);
    }
    return text;
}

struct part {
    int32_t *ids;
    size_t n;
    int32_t control;
    bool lstrip;
    bool rstrip;
};

static enum burin_status find_control(
        const struct burin_tokenizer *tokenizer,
        struct burin_span name,
        struct part *part,
        struct burin_error *err)
{
    part->control = burin_token_named(tokenizer, name);
    if (part->control < 0)
        return burin_fail(
                err, BURIN_EMISMATCH,
                "the chat format needs the control token %s, which the vocabulary lacks",
                burin_quote(name).text);
    burin_token_strips(tokenizer, part->control, &part->lstrip, &part->rstrip);
    part->ids = &part->control;
    part->n = 1;
    return BURIN_OK;
}

enum burin_status burin_chat_encode(
        const struct burin_tokenizer *tokenizer,
        const struct burin_piece *pieces,
        int n_pieces,
        struct burin_arena *arena,
        int32_t **ids,
        size_t *n_ids,
        struct burin_error *err)
{
    enum burin_status status = BURIN_OK;
    size_t total = 0;

    *ids = NULL;
    *n_ids = 0;
    struct part *parts = BURIN_TAKE(arena, (size_t)n_pieces + 1, struct part);
    if (!parts)
        return burin_fail(err, BURIN_ENOMEM, "no memory for %d pieces of a chat", n_pieces);
    for (int i = 0; i < n_pieces && !status; i++)
        if (pieces[i].control)
            status = find_control(tokenizer, pieces[i].text, &parts[i], err);
    for (int i = 0; i < n_pieces && !status; i++) {
        if (!pieces[i].control) {
            const struct burin_span text =
                    strip(pieces[i].text, i > 0 && parts[i - 1].rstrip,
                          i + 1 < n_pieces && parts[i + 1].lstrip);
            status = burin_encode(
                    tokenizer, text, BURIN_PLAIN, arena, &parts[i].ids, &parts[i].n, err);
        }
        total += parts[i].n;
    }
    if (status)
        return status;

    int32_t *all = BURIN_TAKE(arena, total + 1, int32_t);
    if (!all)
        return burin_fail(err, BURIN_ENOMEM, "no memory for %zu ids of a chat", total);
    for (int i = 0; i < n_pieces; i++) {
        memcpy(all + *n_ids, parts[i].ids, parts[i].n * sizeof *all);
        *n_ids += parts[i].n;
    }
    *ids = all;
    return BURIN_OK;
}
