/* runtime/app/interrupt.h -- Ctrl-C.
 *
 * Before burin_interrupt_watch() it ends the process. After it, the first one cancels the
 * request that is told, the second ends the process with exit code 130.
 *
 * Threads  The handler may run on any; the functions are for one. */
#ifndef BURIN_APP_INTERRUPT_H
#define BURIN_APP_INTERRUPT_H

#include "runtime/burin.h"

#include <stdbool.h>

/* The request that Ctrl-C cancels from here on; NULL for none. Installs the handler. */
void burin_interrupt_watch(struct burin_request *request);

/* Whether it was pressed since the last call. */
bool burin_interrupt_taken(void);

#endif
