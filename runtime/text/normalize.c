#include "runtime/text/normalize.h"

#include "runtime/base/utf8.h"

#include <stdint.h>
#include <utf8proc.h>

bool burin_is_plainly_nfc(struct burin_span text)
{
    /* U+0300 is CC 80 in UTF-8. */
    for (size_t i = 0; i < text.length; i++)
        if ((uint8_t)text.at[i] >= 0xCC)
            return false;
    return true;
}

enum burin_status burin_nfc(
        struct burin_span text,
        struct burin_arena *arena,
        struct burin_span *composed,
        struct burin_error *err)
{
    *composed = text;
    if (burin_is_plainly_nfc(text))
        return BURIN_OK;

    /* A character decomposes into at most 3 for its 2 bytes (U+0390). */
    const size_t room = 2 * text.length;
    utf8proc_int32_t *characters = BURIN_TAKE(arena, room, utf8proc_int32_t);
    char *bytes = burin_arena_take(arena, text.length, 3, 1);
    if (!characters || !bytes)
        return burin_fail(
                err, BURIN_ENOMEM, "no memory to normalize a text of %zu bytes",
                text.length);

    const utf8proc_option_t how = UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    utf8proc_ssize_t n = utf8proc_decompose(
            (const utf8proc_uint8_t *)text.at, (utf8proc_ssize_t)text.length, characters,
            (utf8proc_ssize_t)room, how);
    if (n >= 0 && (size_t)n <= room)
        n = utf8proc_normalize_utf32(characters, n, how);
    if (n < 0 || (size_t)n > room)
        return burin_fail(
                err, BURIN_EFORMAT, "a text of %zu bytes cannot be normalized: %s",
                text.length, n < 0 ? utf8proc_errmsg(n) : "it grows too much");

    size_t length = 0;
    for (utf8proc_ssize_t i = 0; i < n; i++)
        length += burin_utf8_put(bytes + length, (uint32_t)characters[i]);
    *composed = (struct burin_span){ bytes, length };
    return BURIN_OK;
}
