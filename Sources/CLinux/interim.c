#include "interim.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

long clinux_receive(int fd, void *buffer, size_t size, int *descriptors, int maximum, int *count, int *pid, unsigned *uid, int *flags) {
    union { char bytes[CMSG_SPACE(sizeof(int) * 253) + CMSG_SPACE(sizeof(struct ucred))]; struct cmsghdr align; } control;
    struct iovec part = {.iov_base = buffer, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    *count = 0; *pid = 0; *uid = (unsigned)-1;
    ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0) return -errno;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&message); h; h = CMSG_NXTHDR(&message, h)) {
        if (h->cmsg_level != SOL_SOCKET) continue;
        if (h->cmsg_type == SCM_CREDENTIALS) {
            struct ucred c; memcpy(&c, CMSG_DATA(h), sizeof c); *pid = c.pid; *uid = c.uid;
        } else if (h->cmsg_type == SCM_RIGHTS) {
            int n = (int)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
            for (int i = 0; i < n; i++) {
                int d; memcpy(&d, CMSG_DATA(h) + sizeof(int) * (size_t)i, sizeof d);
                if (*count < maximum) descriptors[(*count)++] = d; else close(d);
            }
        }
    }
    *flags = message.msg_flags;
    return got;
}

int clinux_flock(int fd) { return flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0; }
int clinux_process_mrelease(int pidfd) { return syscall(448, pidfd, 0) < 0 ? -errno : 0; }

static void *release(void *argument) {
    int pidfd = (int)(long)argument;
    clinux_process_mrelease(pidfd);
    close(pidfd);
    return NULL;
}
int clinux_release_in_thread(int pidfd) {
    pthread_t thread; pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int r = pthread_create(&thread, &attributes, release, (void *)(long)pidfd);
    if (r) close(pidfd);
    return -r;
}
