#include "clinux_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/// Removes what an earlier daemon left, but only a socket.
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
    // The mode of the socket becomes the mode of its file, less the umask: nobody can connect before it is narrow.
    if (setsockopt(descriptor, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0 || fchmod(descriptor, 0600) < 0 ||
        bind(descriptor, (struct sockaddr *)&address, sizeof address) < 0 || chmod(path, mode) < 0) {
        error = -errno;
        close(descriptor);
        return error;
    }
    return descriptor;
}

/// Takes over what one control message carries; descriptors beyond our room are closed.
static void take_control(struct cmsghdr *control, struct clinux_datagram *datagram) {
    size_t length = control->cmsg_len - CMSG_LEN(0);
    if (control->cmsg_level != SOL_SOCKET)
        return;
    if (control->cmsg_type == SCM_CREDENTIALS && length >= sizeof(struct ucred)) {
        struct ucred sender;
        memcpy(&sender, CMSG_DATA(control), sizeof sender);
        datagram->has_sender = true;
        datagram->pid = sender.pid;
        datagram->uid = sender.uid;
        datagram->gid = sender.gid;
    } else if (control->cmsg_type == SCM_RIGHTS) {
        for (size_t i = 0; i < length / sizeof(int); i++) {
            int received;
            memcpy(&received, CMSG_DATA(control) + i * sizeof(int), sizeof received);
            if (datagram->descriptor_count < CLINUX_MOST_DESCRIPTORS)
                datagram->descriptors[datagram->descriptor_count++] = received;
            else
                close(received);
        }
    }
}

int clinux_receive(int descriptor, void *buffer, size_t size, struct clinux_datagram *datagram) {
    // Room for the most that the kernel sends at once, so that nothing is cut off. A cut-off message would still
    // deliver the descriptors that did fit.
    union {
        char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(CLINUX_MOST_DESCRIPTORS * sizeof(int)) + 256];
        struct cmsghdr aligned;
    } control;
    struct iovec part = {buffer, size};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t length;
    do
        length = recvmsg(descriptor, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (length < 0 && errno == EINTR);
    if (length < 0)
        return errno == EAGAIN ? 0 : -errno;
    memset(datagram, 0, offsetof(struct clinux_datagram, descriptors));
    datagram->descriptor_count = 0;
    datagram->length = (size_t)length;
    datagram->truncated = message.msg_flags & MSG_TRUNC;
    datagram->control_truncated = message.msg_flags & MSG_CTRUNC;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
        take_control(c, datagram);
    return 1;
}

int clinux_lock(int descriptor) {
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        return 1;
    return errno == EWOULDBLOCK ? 0 : -errno;
}

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
const int clinux_size_seals = F_SEAL_SHRINK | F_SEAL_GROW;
