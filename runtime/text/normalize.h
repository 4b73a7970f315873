/* runtime/text/normalize.h -- Canonical composition (NFC), by utf8proc in an arena.
 *
 * Threads  Pure. */
#ifndef BURIN_TEXT_NORMALIZE_H
#define BURIN_TEXT_NORMALIZE_H

#include "runtime/base/arena.h"
#include "runtime/base/span.h"
#include "runtime/base/status.h"

#include <stdbool.h>

/* Is every character below U+0300? Such a text is its own composition. */
bool burin_is_plainly_nfc(struct burin_span text);

/* Well-formed UTF-8 to its composition: the text itself, or a copy in the arena of at most 3
 * times its length. The arena also keeps 8 bytes a byte of text of working memory. */
enum burin_status burin_nfc(
        struct burin_span text,
        struct burin_arena *arena,
        struct burin_span *composed,
        struct burin_error *err);

#endif
