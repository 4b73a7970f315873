#include "runtime/app/interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static _Atomic(struct burin_request *) watched;
static atomic_int presses;

static void on_signal(int number)
{
    (void)number;
    if (atomic_fetch_add(&presses, 1) > 0)
        _exit(130);
    struct burin_request *request = atomic_load(&watched);
    if (request)
        burin_cancel(request);
}

void burin_interrupt_watch(struct burin_request *request)
{
    atomic_store(&watched, request);
    struct sigaction action = { .sa_handler = on_signal }; /* a read at a prompt ends too */
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

bool burin_interrupt_taken(void)
{
    return atomic_exchange(&presses, 0) > 0;
}
