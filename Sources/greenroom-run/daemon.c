// The connection to greenroomd, and the terminal.
#include "relay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

void close_end(int *descriptor) {
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

int relay_connect(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return -1;
    strcpy(address.sun_path, path);
    int socket_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket_ < 0)
        return -1;
    // Without waiting: a daemon whose backlog is full counts as none.
    if (connect(socket_, (struct sockaddr *)&address, sizeof address) == 0)
        return socket_;
    close(socket_);
    return -1;
}

bool relay_send(int socket_, const char *message, size_t length, int descriptor) {
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr aligned;
    } control = {0};
    struct iovec part = {(void *)message, length};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        header.msg_control = control.bytes;
        header.msg_controllen = sizeof control.bytes;
        struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
    }
    return sendmsg(socket_, &header, MSG_NOSIGNAL) == (ssize_t)length;
}

bool relay_ends_asleep(const struct relay *relay) {
    return relay->has_no_input && (relay->has_no_output || relay->caller == CALLER_GONE);
}

void relay_describe(const struct relay *relay) {
    if (relay->protocol == MODEL_CONTEXT)
        relay_send(relay->socket, "L", 1, -1);
    if (relay_ends_asleep(relay))
        relay_send(relay->socket, "A", 1, -1);
}

ssize_t relay_receive(int socket_, char *message, size_t size, int descriptors[2]) {
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr aligned;
    } control;
    struct iovec part = {message, size};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control};
    ssize_t length;
    // A daemon that has closed the connection without reading all of it may have sent something before: the error comes first, and once.
    do
        length = recvmsg(socket_, &header, MSG_CMSG_CLOEXEC);
    while (length < 0 && errno == ECONNRESET);
    if (length < 0)
        return errno == EAGAIN || errno == EINTR ? -1 : 0;
    int received[2] = {-1, -1};
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            memcpy(received, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
    for (int i = 0; i < 2; i++) {
        if (descriptors)
            descriptors[i] = received[i];
        else if (received[i] >= 0)
            close(received[i]);
    }
    return length;
}

/// The first line of /proc/PID/cgroup that is of the unified hierarchy ("0::/…").
static bool group_of(pid_t pid, char *group, size_t size) {
    char path[32], text[4096];
    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0)
        return false;
    text[length] = 0;
    char *line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    if (!line)
        return false;
    line += *line == '\n';
    snprintf(group, size, "%.*s", (int)strcspn(line, "\n"), line);
    return true;
}

/// Opens the file in which processes are put into this process's own group.
static int open_own_members(const struct relay *relay) {
    char link[32], path[4096], group[1024], own[1024];
    snprintf(link, sizeof link, "/proc/self/fd/%d", relay->folder);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0 || !group_of(relay->child, group, sizeof group) || !group_of(getpid(), own, sizeof own))
        return -1;
    // Without "0::". The folder without the group is where the hierarchy is mounted.
    const char *name = group + 3;
    size_t end = strlen(name);
    if ((size_t)length <= end || memcmp(path + length - end, name, end) != 0)
        return -1;
    snprintf(path + length - end, sizeof path - ((size_t)length - end), "%s/cgroup.procs", own + 3);
    return open(path, O_WRONLY | O_CLOEXEC);
}

bool relay_release_children(const struct relay *relay) {
    int own = open_own_members(relay);
    bool is_empty = false, can_move = true;
    // Processes may fork meanwhile. Each round moves all that are there.
    for (int round = 0; round < 100 && !is_empty && can_move; round++) {
        int members = openat(relay->folder, "cgroup.procs", O_RDONLY | O_CLOEXEC);
        FILE *list = members < 0 ? NULL : fdopen(members, "r");
        if (!list)
            break;
        is_empty = true;
        int pid;
        while (can_move && fscanf(list, "%d", &pid) == 1) {
            is_empty = false;
            // One may have ended meanwhile.
            can_move = own >= 0 && (dprintf(own, "%d\n", pid) > 0 || errno == ESRCH);
        }
        fclose(list);
    }
    close_end(&own);
    return is_empty;
}

void terminal_take(struct relay *relay) {
    if (relay->terminal < 0 || relay->held > 0)
        return;
    pid_t foreground = tcgetpgrp(relay->terminal);
    if (foreground <= 0 || foreground == getpgrp())
        return;
    // Only a group of the command's own: a job of the shell that the relay is in the background of keeps the terminal.
    char own[1024], other[1024];
    if (!group_of(relay->child, own, sizeof own) || !group_of(foreground, other, sizeof other) || strcmp(own, other) != 0)
        return;
    // SIGTTOU is blocked, so the kernel permits it from the background.
    if (tcsetpgrp(relay->terminal, getpgrp()) == 0)
        relay->held = foreground;
}

/// The value of a line of /proc/PID/status in hexadecimal: a set of signals, signal 1 the lowest bit.
static unsigned long long signals_in(const char *status, const char *name) {
    const char *line = strstr(status, name);
    return line ? strtoull(line + strlen(name), NULL, 16) : 0;
}

bool terminal_has_signalled(const struct relay *relay) {
    static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};
    char path[32], status[4096];
    snprintf(path, sizeof path, "/proc/%d/status", (int)relay->held);
    int file = relay->held > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return false;
    ssize_t length = read(file, status, sizeof status - 1);
    close(file);
    status[length > 0 ? length : 0] = 0;
    unsigned long long of_terminal = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        of_terminal |= 1ULL << (numbers[i] - 1);
    unsigned long long pending = signals_in(status, "\nSigPnd:") | signals_in(status, "\nShdPnd:");
    return pending & ~signals_in(status, "\nSigBlk:") & of_terminal;
}

void terminal_return(struct relay *relay) {
    if (relay->held > 0 && tcgetpgrp(relay->terminal) == getpgrp())
        tcsetpgrp(relay->terminal, relay->held);
    relay->held = 0;
}
