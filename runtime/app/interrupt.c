#include "runtime/app/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

static _Atomic(struct burin_request *) watched;
static atomic_bool patient; /* the first press does not end the process */
static atomic_int presses;

static void on_signal(int number)
{
    (void)number;
    if (!atomic_load(&patient) || atomic_fetch_add(&presses, 1) > 0)
        _exit(130);
    struct burin_request *request = atomic_load(&watched);
    if (request)
        burin_cancel(request);
}

static void install(struct burin_request *request, bool be_patient)
{
    atomic_store(&watched, request);
    atomic_store(&patient, be_patient);
    struct sigaction action = { .sa_handler = on_signal }; /* without SA_RESTART */
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

void burin_interrupt_ends(void)
{
    install(NULL, false);
}

void burin_interrupt_cancels(struct burin_request *request)
{
    install(request, true);
    if (atomic_load(&presses)) /* it came before there was a request to cancel */
        burin_cancel(request);
}

void burin_interrupt_wakes(void)
{
    install(NULL, true);
}

/* The signal is let in by ppoll() alone: one that came just before a plain read would be
 * forgotten, and the read would wait for a line. */
bool burin_interrupt_wait(int fd)
{
    sigset_t with_interrupt;
    sigset_t before;
    struct pollfd wanted = { .fd = fd, .events = POLLIN };
    sigemptyset(&with_interrupt);
    sigaddset(&with_interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &with_interrupt, &before);
    while (!atomic_load(&presses) && ppoll(&wanted, 1, NULL, &before) < 0 && errno == EINTR)
        continue;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return !atomic_load(&presses);
}

bool burin_interrupt_taken(void)
{
    return atomic_exchange(&presses, 0) > 0;
}
