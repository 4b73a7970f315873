/* runtime/text/chat_values.h -- What a chat function is given, as Lua values.
 *
 * Within a body of the sandbox (chat_sandbox.h): what cannot be pushed is raised. */
#ifndef BURIN_TEXT_CHAT_VALUES_H
#define BURIN_TEXT_CHAT_VALUES_H

#include "runtime/base/span.h"
#include "runtime/text/chat.h"

#include <lua.h>

extern const char *const burin_part_names[BURIN_N_PART_KINDS]; /* "text", "image", ... */

/* A JSON text as a value, one on the stack: null is the light userdata NULL, an object's
 * metatable has its keys, sorted, under "keys". `what` is its name for messages. */
void burin_push_json(lua_State *lua, struct burin_span json, const char *what);

/* A list of messages. Their items are numbered from 0; *n_items is how many there are. */
void burin_push_messages(
        lua_State *lua, const struct burin_message *messages, int n_messages, int *n_items);

#endif
