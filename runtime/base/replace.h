/* runtime/base/replace.h -- Write a file as a whole: who reads it meanwhile sees the one before
 * or the new one.
 *
 * Memory   None is kept.
 * Threads  Any number, of any number of processes. */
#ifndef BURIN_BASE_REPLACE_H
#define BURIN_BASE_REPLACE_H

#include "runtime/base/span.h"

#include <stdbool.h>

/* The n parts one behind the other, under another name in the same folder, then renamed. Folders
 * that are missing are made. False where that cannot be done; a file of that path is as it was
 * then. */
bool burin_replace_file(const char *path, const struct burin_span *parts, int n);

#endif
