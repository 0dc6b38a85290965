// A test is no process of the app, so the daemon refuses its connections. A child of the app connects to the app's bus for it, and
// passes the connection on: one for each connection to the socket at PATH.
#include "lend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int local_socket(const char *path, struct sockaddr_un *address) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    strncpy(address->sun_path, path, sizeof address->sun_path - 1);
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static void pass(int to, int descriptor) {
    union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr aligned; } control;
    struct iovec part = {"c", 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    sendmsg(to, &message, MSG_NOSIGNAL);
}

void lend(const char *path) {
    const char *prefix = "unix:path=", *bus = getenv("GREENROOM_BUS_ADDRESS");
    struct sockaddr_un own, other;
    int listener = local_socket(path, &own);
    unlink(path);
    if (!bus || strncmp(bus, prefix, strlen(prefix)) || bind(listener, (struct sockaddr *)&own, sizeof own) ||
        listen(listener, 64))
        _exit(85);
    if (fork() != 0) {
        close(listener);
        return;
    }
    for (;;) {
        int client = accept(listener, NULL, NULL), one = local_socket(bus + strlen(prefix), &other);
        // Without a connection the client gets the end of its own.
        if (!connect(one, (struct sockaddr *)&other, sizeof other)) pass(client, one);
        close(one);
        close(client);
    }
}
