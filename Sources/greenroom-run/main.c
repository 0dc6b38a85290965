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

/// Creates the child in its group. It waits until a byte arrives in the pipe.
static bool start_child(struct relay *relay, struct group *group, int go[2]) {
    if (pipe2(go, O_CLOEXEC) < 0)
        return false;
    relay->child = fork_into(group->folder, &relay->process);
    bool is_inside = relay->child >= 0;
    // In containers without clone3(2).
    if (!is_inside)
        relay->child = fork();
    if (relay->child < 0)
        return false;
    if (relay->child > 0) {
        close(go[0]);
        close(group->folder);
        close(group->members);
        if (!is_inside)
            relay->process = (int)syscall(SYS_pidfd_open, relay->child, 0);
        return relay->process >= 0;
    }
    if (!is_inside && write(group->members, "0", 1) != 1)
        _exit(FAILED);
    // With a terminal the command stays in the relay's process group: signals of the terminal reach it as without the relay, and a
    // shell sees one job. Without one a signal to the relay's group would arrive twice.
    if (relay->terminal < 0)
        setpgid(0, 0);
    close(go[1]);
    char byte;
    if (read(go[0], &byte, 1) != 1)
        _exit(FAILED);
    _exit(execute(relay));
}

/// Ends the child, which has not executed the command.
static void drop_child(struct relay *relay, int go[2]) {
    close(go[1]);
    waitpid(relay->child, NULL, 0);
    close(relay->process);
    close(relay->socket);
}

/// Asks the daemon to take the command over: words, each with a NUL.
static bool introduce(struct relay *relay, const char *name, char **settings, int count) {
    char message[RELAY_LONGEST];
    size_t length = 0;
    const char *command = strrchr(relay->command[0], '/') ? strrchr(relay->command[0], '/') + 1 : relay->command[0];
    const char *words[] = {"run", relay->terminal < 0 ? "" : "terminal", name, command};
    for (int i = 0; i < 4 + count; i++) {
        const char *word = i < 4 ? words[i] : settings[i - 4];
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

/// Closes the standard streams: a copy of the command's would hide from others that it has closed its own.
static void leave_streams(void) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; i < 3; i++)
        if (null < 0 || dup3(null, i, O_CLOEXEC) < 0)
            close(i);
    if (null > 2)
        close(null);
}

/// Starts the command in the group that the daemon has made for it.
static int run_in(struct relay *relay, struct group *group) {
    int go[2], controls[2];
    char answer[RELAY_LONGEST];
    setenv(RELAY_MARK, "1", 1);
    if (!start_child(relay, group, go)) {
        say("cannot start a process", strerror(errno));
        return FAILED;
    }
    bool is_taken = relay_send(relay->socket, "P", 1, relay->process)
        && await_answer(relay, answer, sizeof answer, controls) == 'M' && controls[0] >= 0 && controls[1] >= 0;
    if (!is_taken) {
        // It waits until the pipe is closed, unless it could not enter the group.
        bool has_ended = waitpid(relay->child, NULL, WNOHANG) == relay->child;
        drop_child(relay, go);
        unsetenv(RELAY_MARK);
        return execute_directly(
            relay, has_ended ? "it may not enter the control groups of greenroomd" : "greenroomd does not answer");
    }
    relay->freezer = controls[0];
    relay->killer = controls[1];
    relay->parent = (int)syscall(SYS_pidfd_open, getppid(), 0);
    if (write(go[1], "", 1) != 1) {
        drop_child(relay, go);
        say("cannot start the command", strerror(errno));
        return FAILED;
    }
    close(go[1]);
    leave_streams();
    return relay_wait(relay);
}

static int run(struct relay *relay, const char *name, char **settings, int count) {
    relay->terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    char answer[RELAY_LONGEST];
    int descriptors[2];
    if (!introduce(relay, name, settings, count))
        return execute_directly(relay, "its settings are too long");
    switch (await_answer(relay, answer, sizeof answer, descriptors)) {
    case 'G':
        if (descriptors[0] < 0 || descriptors[1] < 0 || strlen(answer) > sizeof relay->run)
            break;
        strcpy(relay->run, answer + 1);
        return run_in(relay, &(struct group){descriptors[0], descriptors[1]});
    case 'R': return execute_directly(relay, answer + 1);
    case 'E': say("not started", answer + 1); return FAILED;
    default: break;
    }
    return execute_directly(relay, "greenroomd does not answer");
}

int main(int argc, char **argv) {
    struct relay relay = {
        .socket = -1, .freezer = -1, .killer = -1, .process = -1, .parent = -1, .hang_up = -1, .signals = -1, .terminal = -1};
    const char *name = "", *sockets[8];
    char *settings[64];
    int found = 0, count = 0, i = 1;
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--quiet") == 0)
            relay.quiet = true;
        else if (strcmp(argv[i], "--name") == 0 && i + 1 < argc)
            name = argv[++i];
        else if (strcmp(argv[i], "-p") == 0 && i + 1 < argc && count < 64)
            settings[count++] = argv[++i];
        else if (argv[i][0] == '/' && found < 8)
            sockets[found++] = argv[i];
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
    for (int n = 0; n < found && relay.socket < 0; n++) {
        relay.path = sockets[n];
        relay.socket = relay_connect(relay.path);
    }
    if (relay.socket < 0)
        return execute_directly(&relay, "no greenroomd takes commands");
    return run(&relay, name, settings, count);
}
