#include "clinux_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/// Removes a socket that an earlier process left at the path; any other file stays (-EEXIST).
static int remove_socket(const char *path) {
    struct stat about;
    if (lstat(path, &about) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(about.st_mode))
        return -EEXIST;
    return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

int clinux_datagram_server(const char *path, mode_t mode) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return -ENAMETOOLONG;
    strcpy(address.sun_path, path);
    int error = remove_socket(path);
    if (error < 0)
        return error;
    int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0)
        return -errno;
    int on = 1;
    // bind(2) gives the file the socket's mode, less the umask: no other user can connect before the chmod below.
    if (setsockopt(descriptor, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0 || fchmod(descriptor, 0600) < 0 ||
        bind(descriptor, (struct sockaddr *)&address, sizeof address) < 0 || chmod(path, mode) < 0) {
        error = -errno;
        close(descriptor);
        return error;
    }
    return descriptor;
}

/// Reads one control message; descriptors beyond CLINUX_MOST_DESCRIPTORS are closed.
static void take_control(struct cmsghdr *control, struct clinux_message *message) {
    size_t length = control->cmsg_len - CMSG_LEN(0);
    if (control->cmsg_level != SOL_SOCKET)
        return;
    if (control->cmsg_type == SCM_CREDENTIALS && length >= sizeof(struct ucred)) {
        struct ucred sender;
        memcpy(&sender, CMSG_DATA(control), sizeof sender);
        message->has_sender = true;
        message->sender = (struct clinux_credentials){sender.pid, sender.uid, sender.gid};
    } else if (control->cmsg_type == SCM_RIGHTS) {
        for (size_t i = 0; i < length / sizeof(int); i++) {
            int received;
            memcpy(&received, CMSG_DATA(control) + i * sizeof(int), sizeof received);
            if (message->descriptor_count < CLINUX_MOST_DESCRIPTORS)
                message->descriptors[message->descriptor_count++] = received;
            else
                close(received);
        }
    }
}

int clinux_receive(int descriptor, void *buffer, size_t size, struct clinux_message *message) {
    // Large enough for everything that the kernel sends at once. From a truncated control message the kernel would still
    // deliver the descriptors that fit.
    union {
        char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(CLINUX_MOST_DESCRIPTORS * sizeof(int)) + 256];
        struct cmsghdr aligned;
    } control;
    struct iovec part = {buffer, size};
    struct msghdr header = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t length;
    do
        length = recvmsg(descriptor, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (length < 0 && errno == EINTR);
    if (length < 0)
        return errno == EAGAIN ? 0 : -errno;
    memset(message, 0, offsetof(struct clinux_message, descriptors));
    message->descriptor_count = 0;
    message->length = (size_t)length;
    message->truncated = header.msg_flags & MSG_TRUNC;
    message->control_truncated = header.msg_flags & MSG_CTRUNC;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c))
        take_control(c, message);
    return 1;
}

int clinux_send(int descriptor, const void *bytes, size_t length, const int *descriptors, size_t count) {
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr aligned;
    } control = {0};
    struct iovec part = {(void *)bytes, length};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 2)
        return -EINVAL;
    if (count > 0) {
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(rights), descriptors, count * sizeof(int));
    }
    ssize_t sent;
    do
        sent = sendmsg(descriptor, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return errno == EAGAIN ? 0 : -errno;
    return 1;
}

int clinux_accept(int listener) {
    int descriptor = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return descriptor < 0 ? -errno : descriptor;
}

int clinux_peer_credentials(int descriptor, struct clinux_credentials *credentials) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
        return -errno;
    *credentials = (struct clinux_credentials){peer.pid, peer.uid, peer.gid};
    return 0;
}

int clinux_readable_bytes(int descriptor) {
    int bytes = 0;
    return ioctl(descriptor, FIONREAD, &bytes) < 0 ? 0 : bytes;
}

int clinux_lock(int descriptor) {
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        return 1;
    return errno == EWOULDBLOCK ? 0 : -errno;
}

void clinux_unlock(int descriptor) { flock(descriptor, LOCK_UN); }

int clinux_memfd(const char *name) {
    int descriptor = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return descriptor < 0 ? -errno : descriptor;
}

int clinux_add_seals(int descriptor, int seals) { return fcntl(descriptor, F_ADD_SEALS, seals) < 0 ? -errno : 0; }

int clinux_get_seals(int descriptor) {
    int seals = fcntl(descriptor, F_GET_SEALS);
    return seals < 0 ? -errno : seals;
}

const int clinux_all_seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
const int clinux_content_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
const int clinux_size_seals = F_SEAL_SHRINK | F_SEAL_GROW;
