#include "clinux.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

const char *clinux_errno_name(int number) { return strerrorname_np(number); }

const char *clinux_errno_text(int number) { return strerrordesc_np(number); }

int clinux_openat(int directory, const char *path, int flags, mode_t mode) {
    for (;;) {
        int descriptor = openat(directory, path, flags | O_CLOEXEC, mode);
        if (descriptor >= 0)
            return descriptor;
        if (errno != EINTR)
            return -errno;
    }
}

int clinux_open_entry(int directory, const char *name, int flags) {
    struct open_how how = {
        .flags = (unsigned)(flags | O_CLOEXEC | O_NOFOLLOW),
        .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS,
    };
    for (;;) {
        long descriptor = syscall(SYS_openat2, directory, name, &how, sizeof how);
        if (descriptor >= 0)
            return (int)descriptor;
        // Before Linux 5.6, or a filter of system calls that does not know it.
        if (errno == ENOSYS || errno == EPERM)
            return clinux_openat(directory, name, flags | O_NOFOLLOW, 0);
        if (errno != EINTR && errno != EAGAIN)
            return -errno;
    }
}

const int clinux_path_only = O_PATH;

int clinux_exchange(const char *path, const char *other) {
    return renameat2(AT_FDCWD, path, AT_FDCWD, other, RENAME_EXCHANGE) < 0 ? -errno : 0;
}

int clinux_detach_mount(const char *path) { return umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 ? -errno : 0; }

int clinux_replace(int descriptor, int number) {
    return dup3(descriptor, number, O_CLOEXEC) < 0 ? -errno : number;
}

int clinux_duplicate(int descriptor) {
    int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    return copy < 0 ? -errno : copy;
}

int clinux_set_nonblocking(int descriptor, bool on) {
    int flags = fcntl(descriptor, F_GETFL);
    if (flags < 0)
        return -errno;
    flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
    return fcntl(descriptor, F_SETFL, flags) < 0 ? -errno : 0;
}

bool clinux_is_readable(int descriptor, int64_t seconds, int64_t nanoseconds) {
    struct pollfd state = {.fd = descriptor, .events = POLLIN};
    struct timespec limit = {.tv_sec = seconds, .tv_nsec = nanoseconds};
    return ppoll(&state, 1, &limit, NULL) > 0;
}

int clinux_set_attribute(int descriptor, const char *name, const char *value) {
    return fsetxattr(descriptor, name, value, strlen(value), 0) < 0 ? -errno : 0;
}

ssize_t clinux_get_attribute(const char *path, const char *name, void *buffer, size_t size) {
    ssize_t length = getxattr(path, name, buffer, size);
    return length < 0 ? -errno : length;
}

int clinux_set_inherited(int descriptor, bool inherited) {
    return fcntl(descriptor, F_SETFD, inherited ? 0 : FD_CLOEXEC) < 0 ? -errno : 0;
}

int clinux_pipe(int *ends) { return pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0 ? -errno : 0; }
