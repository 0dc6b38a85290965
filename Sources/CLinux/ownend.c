#include "clinux.h"

#include <signal.h>

// Signals of a fault or an abort. A service manager's watchdog also sends SIGABRT (systemd.service(5), WatchdogSignal=).
static const int own[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
enum { owns = sizeof own / sizeof *own };

static uint64_t *counter;
static struct sigaction before[owns];

// Calls only functions that signal-safety(7) allows.
static void count_own_end(int number) {
    uint64_t *word = __atomic_exchange_n(&counter, NULL, __ATOMIC_ACQ_REL);
    if (word)
        __atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
    // Restore the previous action and raise the signal again.
    for (int i = 0; i < owns; i++)
        if (own[i] == number)
            sigaction(number, &before[i], NULL);
    raise(number);
    // A handler that prints a backtrace, such as Swift's, returns. The process must end by the first signal of a watchdog.
    struct sigaction end = {.sa_handler = SIG_DFL};
    sigaction(number, &end, NULL);
    raise(number);
}

void clinux_count_own_end(uint64_t *word) {
    static bool is_installed;
    __atomic_store_n(&counter, word, __ATOMIC_RELEASE);
    if (!word || is_installed)
        return;
    is_installed = true;
    // SA_NODEFER: the signal that the handler raises is delivered at once.
    struct sigaction action = {.sa_handler = count_own_end, .sa_flags = SA_NODEFER};
    for (int i = 0; i < owns; i++)
        sigaction(own[i], &action, &before[i]);
}
