// A server that gets its sockets from greenroomd (LISTEN_FDS): connections and datagrams, of which it sends back what it receives.
// It has one thread, and waits in poll(2) without a timeout.
//
//   held COMMAND…
//
//   names FILE       appends a line to FILE: LISTEN_FDNAMES, and for each socket whether accept(2) waits: `a:b wait wait`
//   die-first FILE   unless FILE exists: creates it, and exits with 1 when a client waits, without accepting it
//   shut-down        shuts down its first socket (shutdown(2))
//   unlink PATH      removes a file
//   exit N           exits before it serves
//   hold PATH        waits until PATH exists
//   without-ipv6 PROGRAM ARGUMENT…  executes a program for which the kernel has no IPv6 (without.c)
#include "held.h"
#include "serve.h"
#include "without.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST = 3, MOST = 256 };

static struct pollfd watched[MOST];
static int sockets;
static nfds_t count;

static int accepts(int descriptor) {
    int value = 0;
    socklen_t length = sizeof value;
    return getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &value, &length) == 0 && value;
}

static void write_names(const char *file) {
    const char *names = getenv("LISTEN_FDNAMES");
    FILE *stream = fopen(file, "ae");
    if (!stream) _exit(71);
    fprintf(stream, "%s", names ? names : "none");
    for (int i = 0; i < sockets; i++)
        fprintf(stream, " %s", fcntl(FIRST + i, F_GETFL) & O_NONBLOCK ? "nonblocking" : "wait");
    fprintf(stream, "\n");
    fclose(stream);
}

static void die_first(const char *file) {
    int made = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (made < 0) return;
    while (poll(watched, count, -1) < 0 && errno == EINTR) {}
    _exit(1);
}

static void answer_datagram(int descriptor) {
    char bytes[2048];
    struct sockaddr_storage peer;
    socklen_t length = sizeof peer;
    ssize_t received = recvfrom(descriptor, bytes, sizeof bytes, MSG_DONTWAIT, (struct sockaddr *)&peer, &length);
    if (received >= 0 && length > 0) sendto(descriptor, bytes, (size_t)received, MSG_DONTWAIT, (struct sockaddr *)&peer, length);
}

static void serve_socket(int descriptor) {
    if (!accepts(descriptor)) return answer_datagram(descriptor);
    if (count == MOST) return;
    int connection = accept4(descriptor, NULL, NULL, SOCK_CLOEXEC);
    if (connection >= 0) watched[count++] = (struct pollfd){.fd = connection, .events = POLLIN};
}

static void act(char ***next) {
    const char *what = *(*next)++, *value = **next;
    if (!strcmp(what, "shut-down")) { shutdown(FIRST, SHUT_RDWR); return; }
    if (!value) _exit(64);
    if (!strcmp(what, "without-ipv6")) _exit(execute_without_ipv6(*next));
    (*next)++;
    if (!strcmp(what, "names")) write_names(value);
    else if (!strcmp(what, "die-first")) die_first(value);
    else if (!strcmp(what, "unlink")) unlink(value);
    else if (!strcmp(what, "exit")) _exit(atoi(value));
    else if (!strcmp(what, "hold")) while (access(value, F_OK)) poll(NULL, 0, 5);
    else _exit(64);
}

int serve_held(char **commands) {
    const char *number = getenv("LISTEN_FDS");
    sockets = number ? atoi(number) : 0;
    if (sockets < 0 || sockets >= MOST) return 64;
    for (int i = 0; i < sockets; i++) watched[count++] = (struct pollfd){.fd = FIRST + i, .events = POLLIN};
    while (*commands) act(&commands);
    for (;;) {
        // A freeze can interrupt the call.
        if (poll(watched, count, -1) < 0) {
            if (errno != EINTR) return 72;
            continue;
        }
        for (nfds_t i = count; i-- > (nfds_t)sockets;) {
            if (!watched[i].revents || send_back(watched[i].fd)) continue;
            close(watched[i].fd);
            watched[i] = watched[--count];
        }
        for (int i = 0; i < sockets; i++)
            if (watched[i].revents) serve_socket(watched[i].fd);
    }
}
