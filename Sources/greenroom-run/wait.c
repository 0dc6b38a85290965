// Waits: for the end of the command, for signals, for the caller, and for the daemon.
#include "relay.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/// Between two attempts to find a daemon: at first, and at most, in ms.
static const long first_retry = 100, longest_retry = 5000;
/// From SIGTERM to SIGKILL without a daemon, in ms: as long as the daemon waits by default (TerminateDeadlineSec=).
static const long longest_end = 5000;
/// How long the daemon has to say that it has ended the command, in ms.
static const int longest_verdict = 10000;

static void tell(struct relay *relay, const char *message) {
    if (relay->socket >= 0)
        relay_send(relay->socket, message, strlen(message), -1);
}

/// Asks the daemon to thaw the command.
static void wake(struct relay *relay) {
    terminal_return(relay);
    tell(relay, "W");
}

/// Everything of the command runs again.
static void thaw(struct relay *relay) {
    terminal_return(relay);
    // Also if the daemon has not said yet that it froze the group.
    if (relay->freezer >= 0 && pwrite(relay->freezer, "0", 1, 0) < 0)
        relay->freezer = -1;
}

/// The daemon is gone. The command runs, and the relay looks for the next daemon.
static void daemon_gone(struct relay *relay) {
    close(relay->socket);
    relay->socket = -1;
    thaw(relay);
}

static void find_daemon(struct relay *relay) {
    relay->retry = relay->retry * 2 < longest_retry ? relay->retry * 2 : longest_retry;
    int found = relay_connect(relay->path);
    if (found < 0)
        return;
    char message[64];
    int length = snprintf(message, sizeof message, "again%c%s", 0, relay->run);
    if (!relay_send(found, message, (size_t)length + 1, relay->process)) {
        close(found);
        return;
    }
    relay->socket = found;
}

static void daemon_says(struct relay *relay) {
    char message[RELAY_LONGEST];
    ssize_t length = relay_receive(relay->socket, message, sizeof message, NULL);
    if (length < 0)
        return;
    switch (length == 0 ? 0 : message[0]) {
    // A daemon knows the run again.
    case 'M':
        relay->retry = first_retry;
        relay_describe(relay);
        relay->is_busy = false;
        break;
    case 'F':
        relay->is_to_end = relay_ends_asleep(relay);
        terminal_take(relay);
        if (terminal_has_signalled(relay))
            wake(relay);
        break;
    // The daemon thaws the command after the answer.
    case 'T':
        terminal_return(relay);
        tell(relay, "t");
        break;
    case 'U': relay->has_verdict = true; break;
    // Also a daemon that does not know the run: then it runs on without one.
    case 0: daemon_gone(relay); break;
    default: break;
    }
}

/// The caller is gone, and nothing can use the command any more.
static int end_all(struct relay *relay) {
    // The daemon ends everything when this process has ended. Or there is no command: the daemon had ended it.
    if (relay->socket >= 0 || relay->child <= 0)
        return FAILED;
    thaw(relay);
    kill(relay->child, SIGTERM);
    struct pollfd end = {relay->process, POLLIN, 0};
    poll(&end, 1, (int)longest_end);
    if (relay->killer >= 0 && pwrite(relay->killer, "1", 1, 0) < 0)
        kill(relay->child, SIGKILL);
    return FAILED;
}

/// Gets a standard stream of the command that can hang up; -1: it cannot. With a protocol the relay has the caller's streams itself.
static int stream(const struct relay *relay, int number) {
    struct stat status;
    int found = relay->protocol ? -1 : (int)syscall(SYS_pidfd_getfd, relay->process, number, 0);
    if (found >= 0 && (fstat(found, &status) < 0 || !(S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode))))
        close_end(&found);
    return found;
}

/// Has the daemon say when it suspends the command, which can read the end of its input before.
static void end_asleep(struct relay *relay) {
    tell(relay, "A");
    wake(relay);
}

/// The caller is gone. That alone is normal (`nohup`, `&`): the end of standard input counts, too.
static void parent_gone(struct relay *relay) {
    close_end(&relay->parent);
    relay->caller = CALLER_GONE;
    if (relay->has_no_input)
        end_asleep(relay);
    else if (relay->input < 0)
        relay->input = stream(relay, STDIN_FILENO);
}

/// The other end of standard input is gone. In `producer | greenroomctl run -- consumer >file &` of a script that has ended that is normal,
/// too: the command ends when its output is not read, either, or when it sleeps.
static void input_gone(struct relay *relay) {
    close_end(&relay->input);
    relay->has_no_input = true;
    relay->output = stream(relay, STDOUT_FILENO);
    if (relay->caller == CALLER_GONE)
        end_asleep(relay);
}

/// The other ends of both streams are gone: the caller has ended, or has closed them and waits for the end of the command.
static void output_gone(struct relay *relay) {
    close_end(&relay->output);
    relay->has_no_output = true;
    if (relay->caller != CALLER_GONE)
        end_asleep(relay);
}

/// Stops as the command did, so that the caller's shell sees a stopped job.
static void stop(int number) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    signal(number, SIG_DFL);
    kill(getpid(), number);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    sigprocmask(SIG_BLOCK, &one, NULL);
}

/// Whether the daemon has ended the command, which slept, and it can be started again without a loss.
static bool is_to_return(struct relay *relay) {
    while (!relay->has_verdict && relay->socket >= 0) {
        struct pollfd verdict = {relay->socket, POLLIN, 0};
        if (poll(&verdict, 1, longest_verdict) <= 0)
            break;
        daemon_says(relay);
    }
    return relay->has_verdict && protocol_ended();
}

/// Nothing is left of the command.
static void leave_command(struct relay *relay) {
    close_end(&relay->socket);
    close_end(&relay->freezer);
    close_end(&relay->killer);
    close_end(&relay->process);
    close_end(&relay->folder);
    relay->child = 0;
    relay->held = 0;
    relay->is_busy = relay->has_verdict = false;
    relay->run[0] = 0;
}

/// - Returns: the exit status of the relay; -1: the command has not ended, or is started again.
static int child_changed(struct relay *relay) {
    siginfo_t change;
    for (;;) {
        memset(&change, 0, sizeof change);
        // It stays a zombie until the daemon knows how it ended.
        if (waitid(P_PID, (id_t)relay->child, &change, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) < 0 || change.si_pid == 0)
            return -1;
        if (change.si_code != CLD_STOPPED && change.si_code != CLD_TRAPPED)
            break;
        waitid(P_PID, (id_t)relay->child, &change, WSTOPPED | WNOHANG);
        if (change.si_code == CLD_STOPPED)
            stop(change.si_status);
    }
    // greenroomd waits for the status before it ends what is left.
    if (relay->keeps_children && relay->folder >= 0 && !relay_release_children(relay) && !relay->quiet)
        dprintf(STDERR_FILENO, "greenroomctl: run: what the command has left behind is ended: it cannot be moved\n");
    int status = change.si_code == CLD_EXITED ? (change.si_status & 0xff) << 8
                                              : change.si_status | (change.si_code == CLD_DUMPED ? 0x80 : 0);
    char message[32];
    snprintf(message, sizeof message, "X%d", status);
    tell(relay, message);
    // The daemon ends what the command has left behind. Without one, and if it dies now, this does.
    if (relay->socket < 0 && relay->killer >= 0 && pwrite(relay->killer, "1", 1, 0) < 0)
        relay->killer = -1;
    waitpid(relay->child, NULL, 0);
    if (relay->protocol == MODEL_CONTEXT && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && is_to_return(relay)) {
        leave_command(relay);
        return -1;
    }
    if (relay->protocol)
        protocol_finish(relay->signals);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// Passes a signal on.
static void signalled(struct relay *relay, const struct signalfd_siginfo *signal) {
    int number = (int)signal->ssi_signo;
    // Of its own write(2).
    if (number == SIGPIPE && signal->ssi_pid == (uint32_t)getpid())
        return;
    pid_t held = relay->held;
    // It may be frozen.
    wake(relay);
    // Signals of the terminal have reached the command already, unless the relay had taken the terminal.
    if (signal->ssi_code == SI_KERNEL) {
        if (held > 0)
            kill(-held, number);
    } else {
        // The child is not reaped yet, so no other process has its pid. Sandboxes forbid pidfd_send_signal(2) more often than kill(2).
        kill(relay->child, number);
    }
}

/// A signal while there is no command.
static bool ends(int number) {
    return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
}

/// - Returns: the exit status of the relay; -1: the command has not ended.
static int signals_arrived(struct relay *relay) {
    struct signalfd_siginfo signal;
    while (read(relay->signals, &signal, sizeof signal) == sizeof signal) {
        if (signal.ssi_signo == SIGCHLD) {
            int status = relay->child > 0 ? child_changed(relay) : -1;
            if (status >= 0)
                return status;
        } else if (relay->child > 0) {
            signalled(relay, &signal);
        } else if (ends((int)signal.ssi_signo)) {
            return 128 + (int)signal.ssi_signo;
        }
    }
    return -1;
}

/// What passes through.
/// - Returns: the exit status of the relay; -1: the command has not ended.
static int streams_ready(struct relay *relay, const struct pollfd ready[PROTOCOL_ENDS]) {
    if (!protocol_step(ready))
        return 0;
    if (relay->child <= 0 && protocol_has_input() && !relay_start_again(relay))
        return FAILED;
    bool is_busy = protocol_is_busy();
    if (relay->socket >= 0 && is_busy != relay->is_busy) {
        relay->is_busy = is_busy;
        tell(relay, is_busy ? "B" : "I");
    }
    return -1;
}

int relay_wait(struct relay *relay) {
    enum { SIGNALS, DAEMON, PARENT, INPUT, OUTPUT, STREAMS };
    const short hang_up = POLLHUP | POLLERR | POLLNVAL;
    sigset_t all;
    sigfillset(&all);
    relay->retry = first_retry;
    relay->signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    if (relay->signals < 0)
        return end_all(relay);
    // Before this process began.
    if (relay->caller == CALLER_GONE)
        parent_gone(relay);
    else if (relay->caller == CALLER_UNKNOWN)
        relay->input = stream(relay, STDIN_FILENO);
    for (;;) {
        struct pollfd ready[STREAMS + PROTOCOL_ENDS] = {
            [SIGNALS] = {relay->signals, POLLIN, 0},
            [DAEMON] = {relay->socket, POLLIN, 0},
            [PARENT] = {relay->parent, POLLIN, 0},
            [INPUT] = {relay->input, 0, 0},
            [OUTPUT] = {relay->output, 0, 0},
        };
        if (relay->protocol)
            protocol_poll(ready + STREAMS);
        bool seeks_daemon = relay->socket < 0 && relay->run[0];
        int count = poll(ready, relay->protocol ? STREAMS + PROTOCOL_ENDS : STREAMS, seeks_daemon ? (int)relay->retry : -1);
        if (count == 0)
            find_daemon(relay);
        if (count <= 0)
            continue;
        int status = signals_arrived(relay);
        if (status >= 0)
            return status;
        if (ready[DAEMON].revents && relay->socket >= 0)
            daemon_says(relay);
        if (ready[PARENT].revents)
            parent_gone(relay);
        if (ready[INPUT].revents & hang_up)
            input_gone(relay);
        if (ready[OUTPUT].revents & hang_up)
            output_gone(relay);
        if (relay->is_to_end || (relay->caller == CALLER_GONE && relay->has_no_output))
            return end_all(relay);
        if (relay->protocol)
            status = streams_ready(relay, ready + STREAMS);
        if (status >= 0)
            return status;
        if (relay->caller == CALLER_GONE && relay->protocol && protocol_client_left(true))
            return end_all(relay);
        if (relay->caller == CALLER_UNKNOWN && relay->protocol && !relay->has_no_output && protocol_client_left(false)) {
            relay->has_no_input = true;
            output_gone(relay);
        }
    }
}
