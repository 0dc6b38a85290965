// A server that knows nothing of Greenroom, for tests with many of them: 1 MB each, where Python takes 10 MB and 50 ms.
//
//   serve FILE
//
// It listens on a port of 127.0.0.1 that the kernel chooses, writes its number to FILE, and sends what it receives back to
// the sender. It has one thread, and waits in poll(2) without a timeout.
#include "serve.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 64 };

static struct pollfd watched[1 + MOST];
static nfds_t count = 1;

/// Writes the port so that a reader finds no file or all of it.
static int publish(const char *file, int port) {
    char other[4096];
    if (snprintf(other, sizeof other, "%s.new", file) >= (int)sizeof other) return -1;
    FILE *stream = fopen(other, "we");
    if (!stream) return -1;
    int failed = fprintf(stream, "%d", port) < 0;
    if (fclose(stream) || failed) return -1;
    return rename(other, file);
}

int send_back(int connection) {
    static char bytes[65536];
    ssize_t length = recv(connection, bytes, sizeof bytes, MSG_DONTWAIT);
    if (length < 0) return errno == EAGAIN || errno == EINTR;
    for (ssize_t sent = 0; sent < length;) {
        ssize_t more = send(connection, bytes + sent, (size_t)(length - sent), MSG_NOSIGNAL);
        if (more < 0 && errno != EINTR) return 0;
        if (more > 0) sent += more;
    }
    return length > 0;
}

int serve(const char *file) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) || listen(listener, MOST) ||
        getsockname(listener, (struct sockaddr *)&address, &size) || publish(file, ntohs(address.sin_port)))
        return 71;
    watched[0] = (struct pollfd){.fd = listener, .events = POLLIN};
    for (;;) {
        // A freeze can interrupt the call.
        if (poll(watched, count, -1) < 0) {
            if (errno != EINTR) return 72;
            continue;
        }
        for (nfds_t i = count - 1; i > 0; i--) {
            if (!watched[i].revents || send_back(watched[i].fd)) continue;
            close(watched[i].fd);
            watched[i] = watched[--count];
        }
        // What is one too many waits until another connection ends.
        if (watched[0].revents && count <= MOST) {
            int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
            if (connection >= 0) watched[count++] = (struct pollfd){.fd = connection, .events = POLLIN};
        }
    }
}
