#pragma once

#include "protocol.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/// The relay of `greenroomctl run` (L54). It starts COMMAND as its child in the caller's context, hands a pidfd to greenroomd, and
/// waits: for the end of the command, for signals, for its own caller, and for the daemon. Without --protocol= no byte of the command
/// passes through it.
///
/// Usage: greenroom-run [--quiet] [--keep-children] [--name NAME] [--protocol jsonrpc|mcp] [-p KEY=VALUE]… SOCKET… -- COMMAND…
///
/// SOCKET: where a greenroomd may listen; the first that accepts counts.
/// Exit status: that of the command, 128 + n for signal n; 125: the relay itself failed, 126: the command cannot be executed, 127:
/// there is no such command.

enum { FAILED = 125, NOT_EXECUTABLE = 126, NOT_FOUND = 127 };
enum { MOST_SOCKETS = 8, MOST_SETTINGS = 64 };

/// The mark by which a relay knows that it runs within another one.
#define RELAY_MARK "GREENROOM_WITHIN_RUN"
/// The longest message in either direction, in bytes.
#define RELAY_LONGEST 8192

enum caller { CALLER_LIVES, CALLER_UNKNOWN, CALLER_GONE };

struct relay {
    bool quiet;
    bool keeps_children;
    int folder;      // of the command's group, with `keeps_children`
    int socket;      // the daemon; -1: none
    int freezer;     // cgroup.freeze of the command's group
    int killer;      // cgroup.kill
    int process;     // a pidfd of the command
    int parent;      // a pidfd of the caller
    enum caller caller;
    int input;       // the command's standard input, unless the caller lives
    int output;      // the command's standard output, once the input has hung up
    bool has_no_input, has_no_output; // the stream has hung up
    bool is_to_end;  // the command was suspended, and `relay_ends_asleep`
    int signals;     // a signalfd
    int terminal;    // the controlling terminal
    pid_t child;
    pid_t held;      // the process group of the command that was in the foreground of the terminal before the relay took it
    long retry;      // milliseconds until the next attempt to find a daemon
    char run[32];    // the number of the run, as the daemon gave it; empty: no daemon has the command
    const char *path; // of the daemon's socket
    enum protocol protocol;
    bool is_busy;     // as the daemon knows
    bool has_verdict; // the daemon has ended the command for its memory, while it slept
    const char *name;
    char *settings[MOST_SETTINGS];
    int setting_count;
    const char *sockets[MOST_SOCKETS];
    int socket_count;
    char **command;
    sigset_t inherited;
    bool ignores_children; // SIGCHLD was ignored
};

/// Closes a descriptor if it is open, and sets it to -1.
void close_end(int *descriptor);

/// What the command has left behind leaves its group for that of the relay, and continues as without it.
/// - Returns: false if it may not, or does not come to an end.
bool relay_release_children(const struct relay *relay);

/// Connects to a daemon; -1 if none listens at the path.
int relay_connect(const char *path);
/// Whether the command is to end when it sleeps: its caller is gone, and it gets no input any more; or nothing reads its output, either, and
/// its caller may be gone.
bool relay_ends_asleep(const struct relay *relay);
/// Tells the daemon what it has to know of a command: whether it may be started again, and whether its next suspension ends it.
void relay_describe(const struct relay *relay);
/// Sends a message, with a descriptor if that is not -1.
bool relay_send(int socket, const char *message, size_t length, int descriptor);
/// Receives a message, without its descriptors unless there is space for them: its length, 0 at the end, -1 if there is none.
ssize_t relay_receive(int socket, char *message, size_t size, int descriptors[2]);

/// While the command is frozen: makes the relay's own group the foreground group of the terminal, so that its signals arrive here.
void terminal_take(struct relay *relay);
/// Whether a signal of the terminal waits for the command: it came after the freeze, and before the terminal was taken.
bool terminal_has_signalled(const struct relay *relay);
/// Makes the command's group the foreground group again.
void terminal_return(struct relay *relay);

/// Starts the command again, which the daemon had ended: with a daemon if there is one.
bool relay_start_again(struct relay *relay);
/// Waits until the command has ended, and returns the exit status of the relay.
int relay_wait(struct relay *relay);
