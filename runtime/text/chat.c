#include "runtime/text/chat.h"

#include "runtime/base/utf8.h"
#include "runtime/text/chat_sandbox.h"
#include "runtime/text/chat_values.h"
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
    int n_items;
    bool no_memory;
};

/* Read what render put at `index` of the stack; its text stays there. False for what is no
 * piece. */
static bool read_piece(lua_State *lua, int index, struct burin_piece *piece)
{
    *piece = (struct burin_piece){ .control = lua_istable(lua, index) };
    if (piece->control) {
        lua_getfield(lua, index, "n_soft");
        piece->n_soft = (int)lua_tointeger(lua, -1);
        lua_getfield(lua, index, "item");
        piece->item = (int)lua_tointeger(lua, -1);
        lua_getfield(lua, index, "control");
        lua_replace(lua, index);
        lua_pop(lua, 2);
    }
    if (lua_type(lua, index) != LUA_TSTRING)
        return false;
    piece->text.at = lua_tolstring(lua, index, &piece->text.length);
    return true;
}

/* Adjacent texts become one piece: tokens must not depend on where a format cuts its text. */
static void take_pieces(lua_State *lua, struct render *job)
{
    if (!lua_istable(lua, -1))
        luaL_error(lua, "%s: render returned no list of pieces", job->chat->name);

    const int list = lua_gettop(lua);
    const size_t n = lua_rawlen(lua, list);
    struct burin_piece piece;
    size_t bytes = 0;
    int n_items = 0;
    for (size_t i = 1; i <= n; i++) {
        lua_rawgeti(lua, list, (lua_Integer)i);
        if (!read_piece(lua, list + 1, &piece))
            luaL_error(
                    lua, "%s: piece %d is no text and no control token", job->chat->name,
                    (int)i);
        if (piece.n_soft > 0 && piece.item != n_items++)
            luaL_error(
                    lua, "%s: piece %d is item %d, item %d is next", job->chat->name,
                    (int)i, piece.item + 1, n_items);
        bytes += piece.text.length + 1;
        lua_settop(lua, list);
    }
    if (n_items != job->n_items)
        luaL_error(
                lua, "%s: %d of %d pictures, frames or sounds have no place in the text",
                job->chat->name, job->n_items - n_items, job->n_items);

    char *text = burin_arena_take(job->arena, bytes + 1, 1, 1);
    job->pieces = BURIN_TAKE(job->arena, n + 1, struct burin_piece);
    job->no_memory = !text || !job->pieces;
    for (size_t i = 1; i <= n && !job->no_memory; i++) {
        lua_rawgeti(lua, list, (lua_Integer)i);
        read_piece(lua, list + 1, &piece);
        struct burin_piece *last = job->n_pieces ? &job->pieces[job->n_pieces - 1] : NULL;
        if (piece.text.length)
            memcpy(text, piece.text.at, piece.text.length);
        piece.text.at = text;
        if (last && !last->control && !piece.control)
            last->text.length += piece.text.length;
        else if (piece.text.length || piece.control)
            job->pieces[job->n_pieces++] = piece;
        text += piece.text.length;
        lua_settop(lua, list);
    }
}

/* Does the list at `list` hold `word`? */
static bool lists(lua_State *lua, int list, const char *word)
{
    const lua_Integer n = (lua_Integer)lua_rawlen(lua, list);
    bool found = false;
    for (lua_Integer i = 1; i <= n && !found; i++) {
        found = lua_rawgeti(lua, list, i) == LUA_TSTRING &&
                strcmp(lua_tostring(lua, -1), word) == 0;
        lua_pop(lua, 1);
    }
    return found;
}

/* Parts are refused before render sees them where the format on the top would not place them. */
static void check_parts(lua_State *lua, const struct render *job)
{
    const bool has_media = lua_getfield(lua, -1, "media") == LUA_TTABLE;
    for (int i = 0; i < job->n_messages; i++) {
        for (int k = 0; k < job->messages[i].n_parts; k++) {
            const enum burin_part_kind kind = job->messages[i].parts[k].kind;
            const char *name = burin_part_names[kind];
            if (!has_media ||
                (kind != BURIN_PART_TEXT && !lists(lua, lua_gettop(lua), name)))
                burin_sandbox_refuse(
                        lua, BURIN_EMISMATCH, "%s: %s has no place for a part of type %s",
                        job->chat->name, job->chat->variant, name);
        }
    }
    lua_pop(lua, 1);
}

static void push_options(lua_State *lua, const struct burin_chat_options *options)
{
    lua_createtable(lua, 0, 4);
    lua_pushboolean(lua, options->add_generation_prompt);
    lua_setfield(lua, -2, "add_generation_prompt");
    lua_pushstring(lua, options->date);
    lua_setfield(lua, -2, "date");
    lua_pushboolean(lua, options->thinking);
    lua_setfield(lua, -2, "thinking");
    if (options->tools.length) {
        burin_push_json(lua, options->tools, "tools");
        lua_setfield(lua, -2, "tools");
    }
}

static int render(lua_State *lua)
{
    struct render *job = lua_touserdata(lua, 1);

    burin_sandbox_load(lua, job->chat->source, job->chat->name);
    choose_format(lua, job->chat);
    check_parts(lua, job);
    if (lua_getfield(lua, -1, "render") != LUA_TFUNCTION)
        luaL_error(lua, "%s: the format has no render", job->chat->name);
    burin_push_messages(lua, job->messages, job->n_messages, &job->n_items);
    push_options(lua, &job->options);
    lua_call(lua, 2, 1);
    take_pieces(lua, job);
    return 0;
}

static enum burin_status check_text(
        int number, const char *what, struct burin_span text, struct burin_error *err)
{
    const size_t valid = burin_utf8_valid(text, NULL);
    if (!text.at || valid == text.length)
        return BURIN_OK;
    return burin_fail(
            err, BURIN_EFORMAT,
            "the %s of message %d is not UTF-8: byte 0x%02x at offset %zu", what, number,
            (unsigned)(unsigned char)text.at[valid], valid);
}

/* Is all of its text UTF-8? Adds its length to *bytes. JSON is looked at when it is read. */
static enum burin_status check_message(
        int number,
        const struct burin_message *message,
        size_t *bytes,
        struct burin_error *err)
{
    const struct {
        const char *what;
        struct burin_span text;
    } texts[] = {
        { "role", burin_span_of(message->role) },
        { "content", message->n_parts ? (struct burin_span){ 0 } : message->content },
        { "reasoning", message->reasoning },
        { "tool_call_id", burin_span_of(message->tool_call_id) },
        { "name", burin_span_of(message->name) },
    };
    enum burin_status status = BURIN_OK;

    for (size_t i = 0; i < sizeof texts / sizeof *texts && !status; i++) {
        *bytes += texts[i].text.length;
        status = check_text(number, texts[i].what, texts[i].text, err);
    }
    for (int i = 0; i < message->n_parts && !status; i++) {
        *bytes += message->parts[i].text.length;
        status = check_text(number, "content", message->parts[i].text, err);
    }
    *bytes += message->tool_calls.length;
    return status;
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
    size_t bytes = options.tools.length;

    *pieces = NULL;
    *n_pieces = 0;
    for (int i = 0; i < n_messages && !status; i++)
        status = check_message(i + 1, &messages[i], &bytes, err);
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

/* ---- Facts ------------------------------------------------------------------------------ */

struct read_facts {
    const struct burin_chat *chat;
    const struct burin_tokenizer *tokenizer;
    struct burin_chat_facts *facts;
};

/* The id of the name on the top; `what` it does is said where there is none. Pops it. */
static int32_t pop_token(lua_State *lua, const struct read_facts *job, const char *what)
{
    size_t length;
    const char *name = luaL_checklstring(lua, -1, &length);
    const int32_t id =
            burin_token_named(job->tokenizer, (struct burin_span){ name, length });
    if (id < 0)
        burin_sandbox_refuse(
                lua, BURIN_EMISMATCH, "the vocabulary lacks %s, which %s", name, what);
    lua_pop(lua, 1);
    return id;
}

static void read_thinking(lua_State *lua, struct read_facts *job)
{
    struct burin_chat_facts *facts = job->facts;
    size_t length;

    lua_getfield(lua, -1, "from");
    facts->think_from = pop_token(lua, job, "begins a thought");
    lua_getfield(lua, -1, "to");
    facts->think_to = pop_token(lua, job, "ends a thought");
    lua_getfield(lua, -1, "head");
    const char *head = luaL_optlstring(lua, -1, "", &length);
    if (length >= sizeof facts->think_head)
        luaL_error(lua, "%s: the head of a thought is too long", job->chat->name);
    memcpy(facts->think_head, head, length + 1);
    lua_pop(lua, 1);
}

static double pop_number(lua_State *lua, double otherwise)
{
    const double number = luaL_optnumber(lua, -1, otherwise);
    lua_pop(lua, 1);
    return number;
}

static int read_facts(lua_State *lua)
{
    struct read_facts *job = lua_touserdata(lua, 1);
    struct burin_chat_facts *facts = job->facts;

    burin_sandbox_load(lua, job->chat->source, job->chat->name);
    choose_format(lua, job->chat);
    if (lua_getfield(lua, -1, "stop") != LUA_TTABLE || lua_rawlen(lua, -1) == 0)
        luaL_error(lua, "%s: the format has no list of stops", job->chat->name);
    const lua_Unsigned n = lua_rawlen(lua, -1);
    for (lua_Unsigned i = 1; i <= n && facts->n_stops < BURIN_CHAT_MAX_STOPS; i++) {
        lua_rawgeti(lua, -1, (lua_Integer)i);
        facts->stops[facts->n_stops++] = pop_token(lua, job, "ends an answer");
    }
    lua_pop(lua, 1);

    if (lua_getfield(lua, -1, "thinking") == LUA_TTABLE)
        read_thinking(lua, job);
    lua_pop(lua, 1);

    facts->has_sampling = lua_getfield(lua, -1, "sampling") == LUA_TTABLE;
    if (facts->has_sampling) {
        lua_getfield(lua, -1, "temperature");
        facts->temperature = (float)pop_number(lua, 1);
        lua_getfield(lua, -1, "top_k");
        facts->top_k = (int)pop_number(lua, 0);
        lua_getfield(lua, -1, "top_p");
        facts->top_p = (float)pop_number(lua, 1);
    }
    return 0;
}

enum burin_status burin_chat_facts(
        const struct burin_chat *chat,
        const struct burin_tokenizer *tokenizer,
        struct burin_chat_facts *facts,
        struct burin_error *err)
{
    struct read_facts job = { .chat = chat, .tokenizer = tokenizer, .facts = facts };
    struct burin_sandbox sandbox = { 0 };
    *facts = (struct burin_chat_facts){ .think_from = -1, .think_to = -1, .top_p = 1 };
    enum burin_status status = burin_sandbox_open(&sandbox, SANDBOX_BYTES, err);
    if (!status)
        status = burin_sandbox_run(&sandbox, read_facts, &job, err);
    burin_sandbox_close(&sandbox);
    if (status)
        *facts = (struct burin_chat_facts){ .think_from = -1, .think_to = -1, .top_p = 1 };
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
    part->n = 1;
    return BURIN_OK;
}

enum burin_status burin_chat_encode(
        const struct burin_tokenizer *tokenizer,
        const struct burin_piece *pieces,
        int n_pieces,
        struct burin_arena *arena,
        struct burin_prompt *prompt,
        struct burin_error *err)
{
    enum burin_status status = BURIN_OK;
    size_t total = 0;
    size_t n_soft = 0;

    *prompt = (struct burin_prompt){ 0 };
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
        } else if (pieces[i].n_soft > 0) {
            parts[i].n = (size_t)pieces[i].n_soft;
            n_soft++;
        }
        total += parts[i].n;
    }
    if (status)
        return status;

    prompt->ids = BURIN_TAKE(arena, total + 1, int32_t);
    prompt->soft = BURIN_TAKE(arena, n_soft + 1, struct burin_soft);
    if (!prompt->ids || !prompt->soft)
        return burin_fail(err, BURIN_ENOMEM, "no memory for %zu ids of a chat", total);
    for (int i = 0; i < n_pieces; i++) {
        int32_t *at = prompt->ids + prompt->n_ids;
        if (parts[i].ids)
            memcpy(at, parts[i].ids, parts[i].n * sizeof *at);
        for (size_t k = 0; k < parts[i].n && pieces[i].control; k++)
            at[k] = parts[i].control;
        if (pieces[i].n_soft > 0)
            prompt->soft[prompt->n_soft++] = (struct burin_soft){ .item = pieces[i].item,
                                                                  .at = prompt->n_ids,
                                                                  .n = pieces[i].n_soft };
        prompt->n_ids += parts[i].n;
    }
    return BURIN_OK;
}
