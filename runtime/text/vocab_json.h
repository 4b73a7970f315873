/* runtime/text/vocab_json.h -- Private to the readers of tokenizer.json: members that come in any
 * order, over base/json_scan.h.
 *
 * Reading a text decodes it in place, so each value is read once, and what follows a value is
 * found before the value is read.
 *
 * Threads  As json_scan.h. */
#ifndef BURIN_TEXT_VOCAB_JSON_H
#define BURIN_TEXT_VOCAB_JSON_H

#include "runtime/base/json_scan.h"
#include "runtime/base/span.h"
#include "runtime/base/status.h"
#include "runtime/text/vocab.h"

#include <stdbool.h>
#include <stdint.h>

struct burin_json_field {
    const char *name;
    struct burin_json_scan at; /* its value */
    bool is_there;             /* and not null */
};

/* Find the members of an object; those without a field are passed over. */
enum burin_status burin_json_fields(
        struct burin_json_scan object,
        struct burin_json_field *fields,
        int n,
        struct burin_error *err);

#define BURIN_JSON_FIELDS(object, fields, err)                                             \
    burin_json_fields((object), (fields), (int)(sizeof(fields) / sizeof *(fields)), (err))

/* Its text; empty where it is absent. */
enum burin_status burin_json_text_of(
        struct burin_json_field *field, struct burin_span *text, struct burin_error *err);

bool burin_json_flag_of(struct burin_json_field *field, bool otherwise);

/* A number that may be an id. */
enum burin_status burin_json_id(
        struct burin_json_scan *scan, int32_t *id, struct burin_error *err);

/* "tokenizer.json: PART "TYPE" is not supported" */
enum burin_status burin_vocab_refuse(
        const char *part, struct burin_span type, struct burin_error *err);

/* How a text becomes pieces, and pieces a text: splits, nfc, prefix. The vocab has its tokens. */
enum {
    BURIN_NORMALIZER,
    BURIN_PRE_TOKENIZER,
    BURIN_POST_PROCESSOR,
    BURIN_DECODER,
    BURIN_N_STEPS
};
enum burin_status burin_vocab_read_steps(
        struct burin_vocab *vocab,
        struct burin_json_field fields[BURIN_N_STEPS],
        struct burin_error *err);

#endif
