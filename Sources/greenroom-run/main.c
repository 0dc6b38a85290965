// Starts the command: greenroomd moves it into its group before it executes its program.
#include "relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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

/// Creates the child, which waits until a byte arrives in the pipe.
static bool start_child(struct relay *relay, int go[2]) {
    if (pipe2(go, O_CLOEXEC) < 0)
        return false;
    relay->child = fork();
    if (relay->child < 0)
        return false;
    if (relay->child > 0) {
        close(go[0]);
        relay->process = (int)syscall(SYS_pidfd_open, relay->child, 0);
        return relay->process >= 0;
    }
    // With a terminal the command stays in the relay's group: signals of the terminal reach it as without the relay, and a shell
    // sees one job. Without one a signal to the relay's group would arrive twice.
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

/// Asks the daemon to take the command over: words, each with a NUL, and a pidfd.
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
    return relay_send(relay->socket, message, length, relay->process);
}

/// Waits for the daemon's answer. `M`: the command is in its group; `R`: the daemon cannot take it; `E`: the caller is to correct something.
/// - Returns: its first letter; 0: there is none.
static char await_answer(struct relay *relay, char *message, size_t size) {
    struct pollfd answer = {relay->socket, POLLIN, 0};
    if (poll(&answer, 1, longest_answer) <= 0)
        return 0;
    int descriptors[2];
    ssize_t length = relay_receive(relay->socket, message, size - 1, descriptors);
    if (length <= 0)
        return 0;
    message[length] = 0;
    if (message[0] != 'M')
        return message[0];
    relay->freezer = descriptors[0];
    relay->killer = descriptors[1];
    if ((size_t)length > sizeof relay->run)
        return 0;
    memcpy(relay->run, message + 1, (size_t)length);
    return descriptors[0] >= 0 && descriptors[1] >= 0 ? 'M' : 0;
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

static int run(struct relay *relay, const char *name, char **settings, int count) {
    relay->terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    int go[2];
    if (!start_child(relay, go)) {
        say("cannot start a process", strerror(errno));
        return FAILED;
    }
    char answer[RELAY_LONGEST];
    bool is_sent = introduce(relay, name, settings, count);
    switch (is_sent ? await_answer(relay, answer, sizeof answer) : 0) {
    case 'M': break;
    case 'R': drop_child(relay, go); return execute_directly(relay, answer + 1);
    case 'E':
        drop_child(relay, go);
        say("not started", answer + 1);
        return FAILED;
    default:
        drop_child(relay, go);
        return execute_directly(relay, is_sent ? "greenroomd does not answer" : "its settings are too long");
    }
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
    setenv(RELAY_MARK, "1", 1);
    return run(&relay, name, settings, count);
}
