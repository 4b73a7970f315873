/* runtime/base/json_scan.h -- Reading JSON whose shape is known, where it lies.
 *
 *     struct burin_json_scan scan;
 *     status = burin_json_scan_begin(&scan, "x.json", text, length, err);
 *     status = burin_json_enter(&scan, '{', err);
 *     while (!(status = burin_json_member(&scan, &key, &more, err)) && more)
 *         if (burin_span_is(key, "size"))
 *             status = burin_json_u64(&scan, &size, err);
 *         else
 *             status = burin_json_skip(&scan, err);
 *     status = burin_json_end(&scan, err);
 *
 * Strict   RFC 8259, nothing more: UTF-8, paired surrogates, no comments, nothing behind the
 *          value. At most BURIN_JSON_NESTING values within each other.
 * Memory   Takes none: a hostile file cannot make 20 bytes out of each of its own, as a tree of
 *          values would. Texts are views; one with escapes is decoded in place, so `bytes` is
 *          written to, and what has been read cannot be read again.
 * Threads  One at a time on a scan.
 * Errors   BURIN_EFORMAT, with the byte where it is. */
#ifndef BURIN_BASE_JSON_SCAN_H
#define BURIN_BASE_JSON_SCAN_H

#include "runtime/base/span.h"
#include "runtime/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BURIN_JSON_NESTING = 64 };

struct burin_json_scan {
    const char *name; /* of the source, for messages */
    char *begin;
    char *at;
    char *end;
    int depth;
    bool fresh; /* entered an object or array, and took nothing from it so far */
};

enum burin_status burin_json_scan_begin(
        struct burin_json_scan *scan,
        const char *name,
        char *bytes,
        size_t length,
        struct burin_error *err);

/* The first character of the next value: one of {["-0123456789tfn or what is there instead;
 * 0 at the end. */
char burin_json_peek(struct burin_json_scan *scan);

/* Go into the next value, which must be an object ('{') or an array ('['). */
enum burin_status burin_json_enter(
        struct burin_json_scan *scan, char bracket, struct burin_error *err);

/* The key of the next member, its value is next; or leave the object with *more false. */
enum burin_status burin_json_member(
        struct burin_json_scan *scan,
        struct burin_span *key,
        bool *more,
        struct burin_error *err);

/* Whether there is another element, which is next then; else the array is left. */
enum burin_status burin_json_element(
        struct burin_json_scan *scan, bool *more, struct burin_error *err);

enum burin_status burin_json_take_text(
        struct burin_json_scan *scan, struct burin_span *text, struct burin_error *err);

/* A whole number from 0 to 2^64 - 1, written without fraction or exponent. */
enum burin_status burin_json_u64(
        struct burin_json_scan *scan, uint64_t *value, struct burin_error *err);

/* Any value. */
enum burin_status burin_json_skip(struct burin_json_scan *scan, struct burin_error *err);

/* How many members the object has that is next. All of it is checked, nothing is decoded and
 * the scan stays where it is. */
enum burin_status burin_json_count(
        const struct burin_json_scan *scan, size_t *n_members, struct burin_error *err);

/* Nothing but white space is left. */
enum burin_status burin_json_end(struct burin_json_scan *scan, struct burin_error *err);

#endif
