#include "clinux.h"

#include <signal.h>

// Signals that a program brings upon itself; SIGABRT is also what a service manager's watchdog sends (systemd.service(5),
// WatchdogSignal=).
static const int own[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
enum { owns = sizeof own / sizeof *own };

static uint64_t *counter;
static struct sigaction before[owns];

// Only what signal-safety(7) allows.
static void count_own_end(int number) {
    uint64_t *word = __atomic_exchange_n(&counter, NULL, __ATOMIC_ACQ_REL);
    if (word)
        __atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
    // Then as it would have ended without us.
    for (int i = 0; i < owns; i++)
        if (own[i] == number)
            sigaction(number, &before[i], NULL);
    raise(number);
}

void clinux_count_own_end(uint64_t *word) {
    static bool is_listening;
    __atomic_store_n(&counter, word, __ATOMIC_RELEASE);
    if (!word || is_listening)
        return;
    is_listening = true;
    // SA_NODEFER: raised again in the handler, it comes at once.
    struct sigaction action = {.sa_handler = count_own_end, .sa_flags = SA_NODEFER};
    for (int i = 0; i < owns; i++)
        sigaction(own[i], &action, &before[i]);
}
