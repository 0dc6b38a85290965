#pragma once
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <systemd/sd-id128.h>
#include <systemd/sd-journal.h>

/* GNU names that Swift's Glibc module does not show: accept4(2), pipe2(2). */
extern int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
extern int pipe2(int *ends, int flags);

/*
 * Entries of an sd_bus vtable. The library's own macros are initialisers, which Swift cannot use, and sd-bus-vtable.h
 * asks for unused bytes of the union to be zero where the table is not static: hence memset, then the fields.
 */

static inline void csystemd_vtable_start(sd_bus_vtable *entry) {
    memset(entry, 0, sizeof(*entry));
    entry->type = _SD_BUS_VTABLE_START;
    entry->x.start.element_size = sizeof(sd_bus_vtable);
    entry->x.start.features = _SD_BUS_VTABLE_PARAM_NAMES;
    entry->x.start.vtable_format_reference = &sd_bus_object_vtable_format;
}

static inline void csystemd_vtable_end(sd_bus_vtable *entry) {
    memset(entry, 0, sizeof(*entry));
    entry->type = _SD_BUS_VTABLE_END;
}

/* `names`: the names of the arguments, then of the results, each ended by a NUL, then one NUL more. */
static inline void csystemd_vtable_method(sd_bus_vtable *entry, const char *member, const char *signature,
                                          const char *result, const char *names, sd_bus_message_handler_t handler,
                                          uint64_t flags) {
    memset(entry, 0, sizeof(*entry));
    entry->type = _SD_BUS_VTABLE_METHOD;
    entry->flags = flags;
    entry->x.method.member = member;
    entry->x.method.signature = signature;
    entry->x.method.result = result;
    entry->x.method.names = names;
    entry->x.method.handler = handler;
}

static inline void csystemd_vtable_signal(sd_bus_vtable *entry, const char *member, const char *signature,
                                          const char *names, uint64_t flags) {
    memset(entry, 0, sizeof(*entry));
    entry->type = _SD_BUS_VTABLE_SIGNAL;
    entry->flags = flags;
    entry->x.signal.member = member;
    entry->x.signal.signature = signature;
    entry->x.signal.names = names;
}

static inline void csystemd_vtable_property(sd_bus_vtable *entry, const char *member, const char *signature,
                                            sd_bus_property_get_t get, uint64_t flags) {
    memset(entry, 0, sizeof(*entry));
    entry->type = _SD_BUS_VTABLE_PROPERTY;
    entry->flags = flags;
    entry->x.property.member = member;
    entry->x.property.signature = signature;
    entry->x.property.get = get;
}

/* Flags, as plain functions: Swift does not import the 64 bit enumerators of an anonymous enum as one type. */

static inline uint64_t csystemd_flag_unprivileged(void) { return SD_BUS_VTABLE_UNPRIVILEGED; }
static inline uint64_t csystemd_flag_no_reply(void) { return SD_BUS_VTABLE_METHOD_NO_REPLY; }
static inline uint64_t csystemd_flag_constant(void) { return SD_BUS_VTABLE_PROPERTY_CONST; }
static inline uint64_t csystemd_flag_emits_change(void) { return SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE; }
static inline uint64_t csystemd_creds_caller(void) {
    return SD_BUS_CREDS_PID | SD_BUS_CREDS_UID | SD_BUS_CREDS_EUID | SD_BUS_CREDS_GID | SD_BUS_CREDS_EGID;
}

/* SO_PEERCRED without struct ucred, which needs _GNU_SOURCE: pid, uid, gid in this order (unix(7)). */
static inline int csystemd_peer_credentials(int fd, int32_t *pid, uint32_t *uid, uint32_t *gid) {
    struct { int32_t pid; uint32_t uid; uint32_t gid; } credentials;
    socklen_t length = sizeof(credentials);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0 || length != sizeof(credentials))
        return -1;
    *pid = credentials.pid;
    *uid = credentials.uid;
    *gid = credentials.gid;
    return 0;
}

/* Bytes that wait to be read from a socket; 0 when that cannot be told. ioctl is variadic. */
static inline int csystemd_readable_bytes(int fd) {
    int bytes = 0;
    return ioctl(fd, FIONREAD, &bytes) < 0 ? 0 : bytes;
}

/* SCM_MAX_FD, unix(7). */
enum { CSYSTEMD_MOST_DESCRIPTORS = 253 };

/* What came on a socket: bytes, and descriptors that came along (close-on-exec). recvmsg(2)'s macros are not Swift's. */
struct csystemd_intake {
    uint32_t descriptor_count;
    int descriptors[CSYSTEMD_MOST_DESCRIPTORS];
};

static inline ssize_t csystemd_receive(int fd, void *buffer, size_t size, struct csystemd_intake *intake) {
    union {
        char bytes[CMSG_SPACE(CSYSTEMD_MOST_DESCRIPTORS * sizeof(int)) + 256];
        struct cmsghdr aligned;
    } control;
    struct iovec part = {buffer, size};
    struct msghdr message;
    memset(&message, 0, sizeof(message));
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof(control.bytes);
    intake->descriptor_count = 0;
    ssize_t length = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (length < 0)
        return length;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        if (count > CSYSTEMD_MOST_DESCRIPTORS - intake->descriptor_count)
            count = CSYSTEMD_MOST_DESCRIPTORS - intake->descriptor_count;
        memcpy(intake->descriptors + intake->descriptor_count, CMSG_DATA(c), count * sizeof(int));
        intake->descriptor_count += (uint32_t)count;
    }
    return length;
}

/* Since Linux 6.16: whoever sends descriptors is refused there (EPERM), and so is not heard here. */
static inline void csystemd_refuse_descriptors(int fd) {
    const int pass_rights = 83; /* SO_PASSRIGHTS, asm-generic/socket.h */
    int no = 0;
    setsockopt(fd, SOL_SOCKET, pass_rights, &no, sizeof(no));
}
