/* runtime/app/interrupt.h -- Ctrl-C: what it does just now.
 *
 * Threads  The handler may run on any; the functions are for one. */
#ifndef BURIN_APP_INTERRUPT_H
#define BURIN_APP_INTERRUPT_H

#include "runtime/burin.h"

#include <stdbool.h>

/* It ends the process with exit code 130. */
void burin_interrupt_ends(void);

/* It cancels the request, and a second one ends the process. */
void burin_interrupt_cancels(struct burin_request *request);

/* It is told of by burin_interrupt_taken(), and ends burin_interrupt_wait(). */
void burin_interrupt_wakes(void);

/* Wait until `fd` can be read; false where Ctrl-C comes first, or came since it was last told
 * of. */
bool burin_interrupt_wait(int fd);

/* Whether it was pressed since the last call. */
bool burin_interrupt_taken(void);

#endif
