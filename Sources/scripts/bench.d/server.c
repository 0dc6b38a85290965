// The echo server of the benchmark. It listens on the socket that it is passed (LISTEN_FDS), or on a port of 127.0.0.1 that the
// kernel chooses, records the port in BOARD, and sends back what it reads. It has one loop with epoll and no timeouts.
//
//   server plain BOARD SLOT                one process with one thread
//   server threads BOARD SLOT COUNT        one process with COUNT threads, of which all but one sleep
//   server processes BOARD SLOT COUNT      COUNT processes that accept from one socket
//   server behind BOARD SLOT COMMAND…      a child serves and ends with this process, which executes COMMAND with one more
//                                          argument, 127.0.0.1:PORT. Descriptor 3 belongs to COMMAND (socket activation)
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "board.h"

static int watch(int epoll, int fd, uint32_t events) {
    struct epoll_event event = {.events = events, .data.fd = fd};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static void accept_one(int epoll, int listener) {
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    // Another process was faster, or the client has gone.
    if (fd < 0) return;
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (watch(epoll, fd, EPOLLIN) != 0) fail("epoll_ctl");
}

static void echo(int fd) {
    char buffer[4096];
    ssize_t count = read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) return;
    for (ssize_t sent = 0; count > 0 && sent < count;) {
        ssize_t more = write(fd, buffer + sent, (size_t)(count - sent));
        if (more < 0 && errno != EINTR) count = -1;
        if (more > 0) sent += more;
    }
    if (count <= 0) close(fd);
}

static _Noreturn void serve(int listener) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0 || watch(epoll, listener, EPOLLIN | EPOLLEXCLUSIVE) != 0) fail("epoll");
    for (;;) {
        struct epoll_event events[16];
        int count = epoll_wait(epoll, events, 16, -1);
        // A process that was frozen may see EINTR.
        if (count < 0 && errno != EINTR) fail("epoll_wait");
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == listener) accept_one(epoll, listener);
            else echo(events[i].data.fd);
        }
    }
}

static int listen_anywhere(uint16_t *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) != 0) fail("bind");
    if (listen(listener, 512) != 0 || getsockname(listener, (struct sockaddr *)&address, &length) != 0) fail("listen");
    *port = ntohs(address.sin_port);
    return listener;
}

// The first socket that sd_listen_fds(3) describes; -1: none was passed.
static int passed_listener(uint16_t *port) {
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    if (!pid || !count || atol(pid) != getpid() || atoi(count) < 1) return -1;
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    if (getsockname(3, (struct sockaddr *)&address, &length) != 0) fail("getsockname");
    if (fcntl(3, F_SETFL, O_NONBLOCK) != 0 || fcntl(3, F_SETFD, FD_CLOEXEC) != 0) fail("fcntl");
    *port = ntohs(address.sin_port);
    return 3;
}

static void *sleep_for_ever(void *unused) {
    for (;;) pause();
    return unused;
}

static void start_threads(long count) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    for (long i = 1; i < count; i++) {
        pthread_t thread;
        if ((errno = pthread_create(&thread, &attributes, sleep_for_ever, NULL)) != 0) fail("pthread_create");
    }
}

// Returns in the parent. A child serves and ends with its parent. It does not keep the descriptor `other` open (-1: none).
static void start_child(int listener, int other) {
    pid_t parent = getpid(), pid = fork();
    if (pid < 0) fail("fork");
    if (pid > 0) return;
    if (other >= 0) close(other);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) exit(0);
    serve(listener);
}

static _Noreturn void execute(int count, char **arguments, uint16_t port) {
    char **command = calloc((size_t)count + 2, sizeof *command), address[32];
    if (!command) fail("calloc");
    for (int i = 0; i < count; i++) command[i] = arguments[i];
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    command[count] = address;
    execv(command[0], command);
    fail(command[0]);
}

int main(int count, char **arguments) {
    if (count < 4) return 2;
    const char *kind = arguments[1];
    struct slot *slot = map_board(arguments[2]) + atoi(arguments[3]);
    long number = count > 4 ? atol(arguments[4]) : 1;
    signal(SIGPIPE, SIG_IGN);
    uint16_t port;
    int listener = strcmp(kind, "behind") ? passed_listener(&port) : -1;
    if (listener < 0) listener = listen_anywhere(&port);
    if (!strcmp(kind, "threads")) start_threads(number);
    if (!strcmp(kind, "processes"))
        for (long i = 1; i < number; i++) start_child(listener, -1);
    atomic_store(&slot->pid, (uint64_t)getpid());
    if (!strcmp(kind, "behind") && count > 4) {
        start_child(listener, 3);
        atomic_store(&slot->port, port);
        execute(count - 4, arguments + 4, port);
    }
    atomic_store(&slot->port, port);
    serve(listener);
}
