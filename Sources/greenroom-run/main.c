// Starts the command in the group that greenroomd has made for it, or without greenroomd.
#include "relay.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/// For how long a daemon has to answer. After that the command is executed without it.
static const int longest_answer = 5000; // ms

static void say(const char *what, const char *problem) {
    dprintf(STDERR_FILENO, "greenroomctl: run: %s: %s\n", what, problem);
}

/// Executes the command in this process.
static int execute(struct relay *relay) {
    if (relay->ignores_children)
        signal(SIGCHLD, SIG_IGN);
    sigprocmask(SIG_SETMASK, &relay->inherited, NULL);
    execvp(relay->command[0], relay->command);
    int problem = errno;
    say(relay->command[0], strerror(problem));
    return problem == ENOENT || problem == ENOTDIR ? NOT_FOUND : NOT_EXECUTABLE;
}

/// Executes the command as without greenroomd.
static int execute_directly(struct relay *relay, const char *reason) {
    if (!relay->quiet)
        dprintf(STDERR_FILENO, "greenroomctl: run: executed directly, it does not sleep: %s\n", reason);
    return execute(relay);
}

/// What the daemon gives a command.
struct group {
    int folder;  // of its control group
    int members; // cgroup.procs
};

/// fork(2) into a control group, with a pidfd. In the group from its first moment on, so nothing has to be moved: the kernel takes some
/// 10 ms for that.
static pid_t fork_into(int folder, int *pidfd) {
    struct clone_args arguments = {
        .flags = CLONE_PIDFD | CLONE_INTO_CGROUP,
        .pidfd = (uintptr_t)pidfd,
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)folder,
    };
    return (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
}

/// Moves the child into the group.
static bool move_into(int members, pid_t child) {
    char text[16];
    int length = snprintf(text, sizeof text, "%d", (int)child);
    return write(members, text, (size_t)length) == length;
}

/// Creates the child in its group. It waits until a byte arrives in the pipe.
/// - Returns: why it is not possible, or NULL. With a problem there may be a child nevertheless.
static const char *start_child(struct relay *relay, struct group *group, int go[2]) {
    static const char no_process[] = "it cannot start a process";
    if (pipe2(go, O_CLOEXEC) < 0)
        return no_process;
    relay->child = fork_into(group->folder, &relay->process);
    bool is_inside = relay->child >= 0;
    // In containers without clone3(2).
    if (!is_inside)
        relay->child = fork();
    if (relay->child < 0)
        return no_process;
    if (relay->child > 0) {
        close(go[0]);
        // By this process, so that the child is there when the daemon looks.
        bool has_entered = is_inside || move_into(group->members, relay->child);
        if (relay->keeps_children)
            relay->folder = group->folder;
        else
            close(group->folder);
        close(group->members);
        if (!is_inside)
            relay->process = (int)syscall(SYS_pidfd_open, relay->child, 0);
        if (relay->process < 0)
            return "its process has no pidfd here";
        return has_entered ? NULL : "it may not enter the control groups of greenroomd";
    }
    // With a terminal the command stays in the relay's process group: signals of the terminal reach it as without the relay, and a
    // shell sees one job. Without one a signal to the relay's group would arrive twice.
    if (relay->terminal < 0)
        setpgid(0, 0);
    close(go[1]);
    char byte;
    if (read(go[0], &byte, 1) != 1 || (relay->protocol && !protocol_enter()))
        _exit(FAILED);
    _exit(execute(relay));
}

/// Ends the child, which has not executed the command, and leaves the daemon.
static void drop_child(struct relay *relay, int go[2]) {
    close(go[1]);
    waitpid(relay->child, NULL, 0);
    close(relay->process);
    close(relay->socket);
    relay->child = relay->process = relay->socket = -1;
}

/// Asks the daemon to take the command over: words, each with a NUL.
static bool introduce(struct relay *relay) {
    char message[RELAY_LONGEST];
    size_t length = 0;
    const char *command = strrchr(relay->command[0], '/') ? strrchr(relay->command[0], '/') + 1 : relay->command[0];
    const char *words[] = {"run", relay->terminal < 0 ? "" : "terminal", relay->name, command};
    for (int i = 0; i < 4 + relay->setting_count; i++) {
        const char *word = i < 4 ? words[i] : relay->settings[i - 4];
        size_t size = strlen(word) + 1;
        if (length + size > sizeof message)
            return false;
        memcpy(message + length, word, size);
        length += size;
    }
    return relay_send(relay->socket, message, length, -1);
}

/// Waits for an answer of the daemon, a letter with what follows.
/// - Returns: the letter; 0: there is no answer.
static char await_answer(struct relay *relay, char *message, size_t size, int descriptors[2]) {
    struct pollfd answer = {relay->socket, POLLIN, 0};
    if (poll(&answer, 1, longest_answer) <= 0)
        return 0;
    ssize_t length = relay_receive(relay->socket, message, size - 1, descriptors);
    if (length <= 0)
        return 0;
    message[length] = 0;
    return message[0];
}

/// Closes the standard streams: a copy of the command's would hide from others that it has closed its own. For a command that is
/// started again, standard error stays.
static void leave_streams(const struct relay *relay) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; i < (relay->protocol ? 2 : 3); i++)
        if (null < 0 || dup3(null, i, O_CLOEXEC) < 0)
            close(i);
    if (null > 2)
        close(null);
}

/// How an attempt to start the command with the daemon ended.
enum outcome { STARTED, WITHOUT_DAEMON, NOT_STARTED };

/// Starts the command in the group that the daemon has made for it.
/// - Parameter problem: why it is WITHOUT_DAEMON.
static enum outcome start_in(struct relay *relay, struct group *group, const char **problem) {
    int go[2], controls[2];
    char answer[RELAY_LONGEST];
    setenv(RELAY_MARK, "1", 1);
    *problem = start_child(relay, group, go);
    if (*problem) {
        // This process can execute the command itself.
        if (relay->child > 0)
            drop_child(relay, go);
        unsetenv(RELAY_MARK);
        return WITHOUT_DAEMON;
    }
    bool is_taken = relay_send(relay->socket, "P", 1, relay->process)
        && await_answer(relay, answer, sizeof answer, controls) == 'M' && controls[0] >= 0 && controls[1] >= 0;
    if (!is_taken) {
        drop_child(relay, go);
        unsetenv(RELAY_MARK);
        *problem = "greenroomd does not answer";
        return WITHOUT_DAEMON;
    }
    relay->freezer = controls[0];
    relay->killer = controls[1];
    relay_describe(relay);
    if (write(go[1], "", 1) != 1) {
        drop_child(relay, go);
        say("cannot start the command", strerror(errno));
        return NOT_STARTED;
    }
    close(go[1]);
    return STARTED;
}

/// Asks the daemon for a group, and starts the command in it.
static enum outcome start_with_daemon(struct relay *relay, char answer[RELAY_LONGEST], const char **problem) {
    int descriptors[2];
    *problem = "greenroomd does not answer";
    if (!introduce(relay)) {
        *problem = "its settings are too long";
        return WITHOUT_DAEMON;
    }
    switch (await_answer(relay, answer, RELAY_LONGEST, descriptors)) {
    case 'G':
        if (descriptors[0] < 0 || descriptors[1] < 0 || strlen(answer) > sizeof relay->run)
            return WITHOUT_DAEMON;
        strcpy(relay->run, answer + 1);
        return start_in(relay, &(struct group){descriptors[0], descriptors[1]}, problem);
    case 'R': *problem = answer + 1; return WITHOUT_DAEMON;
    case 'E': say("not started", answer + 1); return NOT_STARTED;
    default: return WITHOUT_DAEMON;
    }
}

static void connect_to_daemon(struct relay *relay) {
    for (int n = 0; n < relay->socket_count && relay->socket < 0; n++) {
        relay->path = relay->sockets[n];
        relay->socket = relay_connect(relay->path);
    }
}

static int run(struct relay *relay) {
    relay->terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (relay->protocol && !protocol_begin(relay->protocol)) {
        say("cannot pass its streams on", strerror(errno));
        return FAILED;
    }
    char answer[RELAY_LONGEST];
    const char *problem;
    switch (start_with_daemon(relay, answer, &problem)) {
    case STARTED: break;
    case WITHOUT_DAEMON: return execute_directly(relay, problem);
    case NOT_STARTED: return FAILED;
    }
    if (relay->protocol)
        protocol_started();
    leave_streams(relay);
    return relay_wait(relay);
}

bool relay_start_again(struct relay *relay) {
    char answer[RELAY_LONGEST];
    const char *problem = "no greenroomd takes commands";
    relay->run[0] = 0;
    connect_to_daemon(relay);
    enum outcome outcome = relay->socket < 0 ? WITHOUT_DAEMON : start_with_daemon(relay, answer, &problem);
    if (outcome == WITHOUT_DAEMON) {
        relay->run[0] = 0;
        if (!relay->quiet)
            dprintf(STDERR_FILENO, "greenroomctl: run: started again without greenroomd, it does not sleep: %s\n", problem);
        relay->child = fork();
        if (relay->child == 0)
            _exit(protocol_enter() ? execute(relay) : FAILED);
        relay->process = relay->child < 0 ? -1 : (int)syscall(SYS_pidfd_open, relay->child, 0);
    }
    if (outcome == NOT_STARTED || relay->process < 0)
        return false;
    protocol_started();
    return true;
}

static enum protocol protocol_of(const char *name) {
    if (strcmp(name, "mcp") == 0)
        return MODEL_CONTEXT;
    return strcmp(name, "jsonrpc") == 0 ? JSON_RPC : NO_PROTOCOL;
}

/// The caller is the process that has started this one. If it has ended already, this process has another parent by now, with another
/// session: a process has the session of the one that starts it, unless it begins one of its own (credentials(7)). In its own session, and
/// where the parent is process 1, which adopts, it cannot know.
static void find_caller(struct relay *relay) {
    pid_t parent = getppid();
    relay->parent = (int)syscall(SYS_pidfd_open, parent, 0);
    pid_t session = getsid(0), parents = getsid(parent);
    if (getppid() != parent || (parents < 0 && errno == ESRCH))
        relay->caller = CALLER_GONE;
    // Outside the namespace, or a security module hides its session.
    else if (parent == 0 || parents < 0)
        relay->caller = CALLER_LIVES;
    else if (session == getpid())
        relay->caller = CALLER_UNKNOWN;
    else if (parents != session)
        relay->caller = CALLER_GONE;
    else
        relay->caller = parent == 1 ? CALLER_UNKNOWN : CALLER_LIVES;
}

int main(int argc, char **argv) {
    static struct relay relay = {
        .folder = -1, .socket = -1, .freezer = -1, .killer = -1, .process = -1, .parent = -1, .input = -1, .output = -1, .signals = -1, .terminal = -1,
        .name = ""};
    int i = 1;
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--quiet") == 0)
            relay.quiet = true;
        else if (strcmp(argv[i], "--keep-children") == 0)
            relay.keeps_children = true;
        else if (strcmp(argv[i], "--name") == 0 && i + 1 < argc)
            relay.name = argv[++i];
        else if (strcmp(argv[i], "--protocol") == 0 && i + 1 < argc && protocol_of(argv[i + 1]))
            relay.protocol = protocol_of(argv[++i]);
        else if (strcmp(argv[i], "-p") == 0 && i + 1 < argc && relay.setting_count < MOST_SETTINGS)
            relay.settings[relay.setting_count++] = argv[++i];
        else if (argv[i][0] == '/' && relay.socket_count < MOST_SOCKETS)
            relay.sockets[relay.socket_count++] = argv[i];
        else
            break;
    }
    if (i + 1 >= argc || strcmp(argv[i], "--") != 0) {
        say("wrong usage", "greenroomctl starts this program");
        return FAILED;
    }
    relay.command = argv + i + 1;
    // A standard stream that the caller has closed stays closed for the command, and nothing of the relay gets its number.
    for (int stream = 0; stream < 3; stream++)
        if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) != stream)
            return FAILED;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &relay.inherited);
    // With SIGCHLD ignored the kernel would keep no exit status.
    relay.ignores_children = signal(SIGCHLD, SIG_DFL) == SIG_IGN;
    // Two of them would freeze each other: the inner one is a process of the outer one's command.
    if (getenv(RELAY_MARK))
        return execute_directly(&relay, "it runs within another 'greenroomctl run'");
    // It may end while the daemon makes a group.
    find_caller(&relay);
    connect_to_daemon(&relay);
    if (relay.socket < 0)
        return execute_directly(&relay, "no greenroomd takes commands");
    return run(&relay);
}
