/* SIGTERM and SIGINT as events. A signal handler, and no signalfd: it also works if other threads do not block the signals. */
#include "internal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static const int numbers[] = {SIGTERM, SIGINT};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

// The object that has them. Handlers of signals have no argument for it.
static _Atomic(greenroom_app *) owner;
static atomic_int owner_pipe = -1;
static atomic_int owner_process;
static bool is_ours[NUMBERS];

static void caught(int number) {
    int error = errno;
    if (atomic_load(&owner_process) != getpid()) {
        // A child of the app has inherited the handler.
        struct sigaction initial = {.sa_handler = SIG_DFL};
        sigaction(number, &initial, NULL);
        raise(number);
    } else {
        unsigned char byte = (unsigned char)number;
        ssize_t n = write(atomic_load(&owner_pipe), &byte, 1);
        (void)n;
    }
    errno = error;
}

bool signals_are_caught(greenroom_app *app) { return atomic_load(&owner) == app; }

int signals_catch(greenroom_app *app) {
    greenroom_app *none = NULL;
    if (!atomic_compare_exchange_strong(&owner, &none, app))
        return none == app ? 0 : fail(app, -EBUSY, "Another object of this process has the signals.");
    atomic_store(&owner_pipe, app->signals[1]);
    atomic_store(&owner_process, (int)app->process);
    for (int i = 0; i < NUMBERS; i++) {
        struct sigaction earlier, ours = {.sa_handler = caught, .sa_flags = SA_RESTART};
        is_ours[i] = sigaction(numbers[i], NULL, &earlier) == 0 && !(earlier.sa_flags & SA_SIGINFO) &&
            earlier.sa_handler == SIG_DFL && sigaction(numbers[i], &ours, NULL) == 0;
    }
    return 0;
}

void signals_release(greenroom_app *app) {
    if (!signals_are_caught(app))
        return;
    for (int i = 0; i < NUMBERS; i++) {
        struct sigaction current, initial = {.sa_handler = SIG_DFL};
        if (is_ours[i] && sigaction(numbers[i], NULL, &current) == 0 && current.sa_handler == caught)
            sigaction(numbers[i], &initial, NULL);
    }
    // Signals that have arrived and were not read are lost with the pipe: the app ends anyway.
    atomic_store(&owner_pipe, -1);
    atomic_store(&owner, NULL);
}

void signals_read(greenroom_app *app) {
    unsigned char byte;
    while (signals_are_caught(app) && read(app->signals[0], &byte, 1) == 1)
        event_local(app, GREENROOM_WILL_TERMINATE, byte == SIGTERM ? "SIGTERM" : "SIGINT");
}

PUBLIC int greenroom_catch_signals(greenroom_app *app) {
    if (!app)
        return -EINVAL;
    return mode_of(app) == MODE_CHILD ? fail_child(app, "greenroom_catch_signals") : signals_catch(app);
}
