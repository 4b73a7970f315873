/* runtime/base/clock.h -- How long something takes.
 *
 * Threads  Pure; safe in a signal handler. */
#ifndef BURIN_BASE_CLOCK_H
#define BURIN_BASE_CLOCK_H

/* Milliseconds of a clock that never goes back. */
double burin_now_ms(void);

#endif
