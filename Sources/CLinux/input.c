// What waits at a socket, a pipe or a queue, and who sent it. Nothing is read. The calls on sockets of the internet and on
// pipes take their locks, so they are made on a helper thread (input_examine).
#include "input.h"
#include "clinux_socket.h"
#include "clinux_watch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static int option(int descriptor, int name, int *value) {
    socklen_t length = sizeof *value;
    return getsockopt(descriptor, SOL_SOCKET, name, value, &length);
}

int clinux_describe_socket(int descriptor, struct clinux_socket *about) {
    int listens = 0;
    struct linger linger = {0};
    socklen_t length = sizeof linger;
    memset(about, 0, sizeof *about);
    if (option(descriptor, SO_DOMAIN, &about->domain) < 0 || option(descriptor, SO_TYPE, &about->type) < 0)
        return -errno;
    option(descriptor, SO_ACCEPTCONN, &listens);
    option(descriptor, SO_PROTOCOL, &about->protocol);
    about->listens = listens;
    if (getsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, &length) == 0)
        about->lingers = linger.l_onoff;
    return 0;
}

// --- The other end ------------------------------------------------------------------

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un path;
    struct sockaddr_storage space;
};

/// The IPv4 address of a socket, also if IPv6 shows it as a mapped one; NULL: it has none.
static const struct in_addr *v4_address(const union address *address) {
    if (address->any.sa_family == AF_INET)
        return &address->v4.sin_addr;
    if (address->any.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&address->v6.sin6_addr))
        return (const struct in_addr *)(const void *)(address->v6.sin6_addr.s6_addr + 12);
    return NULL;
}

static bool is_same_host(const union address *peer, const union address *own) {
    const struct in_addr *v4 = v4_address(peer), *own_v4 = v4_address(own);
    if (v4)
        return (ntohl(v4->s_addr) >> 24) == 127 || (own_v4 && own_v4->s_addr == v4->s_addr);
    if (peer->any.sa_family != AF_INET6)
        return false;
    return IN6_IS_ADDR_LOOPBACK(&peer->v6.sin6_addr) ||
           (own->any.sa_family == AF_INET6 && IN6_ARE_ADDR_EQUAL(&peer->v6.sin6_addr, &own->v6.sin6_addr));
}

static void describe_internet(int descriptor, const union address *address, struct clinux_peer *peer) {
    union address own = {0};
    socklen_t length = sizeof own;
    char host[INET6_ADDRSTRLEN];
    const struct in_addr *v4 = v4_address(address);
    if (getsockname(descriptor, &own.any, &length) == 0)
        peer->is_local = is_same_host(address, &own);
    int written = 0;
    if (v4 && inet_ntop(AF_INET, v4, host, sizeof host))
        // The port is at the same position in both structures.
        written = snprintf(peer->text, sizeof peer->text, "%s:%u", host, ntohs(address->v4.sin_port));
    else if (!v4 && inet_ntop(AF_INET6, &address->v6.sin6_addr, host, sizeof host))
        written = snprintf(peer->text, sizeof peer->text, "[%s]:%u", host, ntohs(address->v6.sin6_port));
    peer->length = written > 0 && (size_t)written < sizeof peer->text ? (size_t)written : 0;
}

static void describe_unix(int descriptor, const union address *address, socklen_t length, struct clinux_peer *peer) {
    size_t before = offsetof(struct sockaddr_un, sun_path);
    peer->is_local = true;
    if (length <= before) {
        struct ucred owner;
        socklen_t size = sizeof owner;
        if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &owner, &size) == 0)
            peer->pid = owner.pid;
        return;
    }
    const char *path = address->path.sun_path;
    size_t size = length - before;
    if (size > sizeof address->path.sun_path)
        size = sizeof address->path.sun_path;
    if (path[0] == 0) {
        peer->text[0] = '@';
        memcpy(peer->text + 1, path + 1, size - 1);
        peer->length = size;
    } else {
        peer->length = strnlen(path, size);
        memcpy(peer->text, path, peer->length);
    }
}

void clinux_describe_peer(int descriptor, int domain, struct clinux_peer *peer) {
    union address address = {0};
    socklen_t length = sizeof address;
    memset(peer, 0, sizeof *peer);
    // An AF_UNIX socket that is not connected has no peer; its senders are local all the same.
    peer->is_local = domain == AF_UNIX;
    if (domain == AF_NETLINK) {
        memcpy(peer->text, "kernel", peer->length = 6);
        return;
    }
    if (getpeername(descriptor, &address.any, &length) < 0)
        return;
    if (domain == AF_UNIX)
        describe_unix(descriptor, &address, length, peer);
    else if (domain == AF_INET || domain == AF_INET6)
        describe_internet(descriptor, &address, peer);
}

// --- How much waits -----------------------------------------------------------------

int clinux_receive_buffer(int descriptor, uint32_t *used, uint32_t *size) {
    uint32_t memory[SK_MEMINFO_VARS] = {0};
    socklen_t length = sizeof memory;
    if (getsockopt(descriptor, SOL_SOCKET, SO_MEMINFO, memory, &length) < 0)
        return -errno;
    *used = memory[SK_MEMINFO_RMEM_ALLOC];
    *size = memory[SK_MEMINFO_RCVBUF];
    return 0;
}

int clinux_tcp_backlog(int descriptor, uint32_t *waiting, uint32_t *limit) {
    // Of a listening socket the kernel does not lock anything, and reports these two in fields with other names.
    struct tcp_info about;
    socklen_t length = sizeof about;
    memset(&about, 0, sizeof about);
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &about, &length) < 0)
        return -errno;
    *waiting = about.tcpi_unacked;
    *limit = about.tcpi_sacked;
    return 0;
}

int clinux_pipe_size(int descriptor) {
    int size = fcntl(descriptor, F_GETPIPE_SZ);
    return size < 0 ? -errno : size;
}

bool clinux_is_packet_pipe(int descriptor) {
    int flags = fcntl(descriptor, F_GETFL);
    return flags >= 0 && (flags & O_DIRECT);
}

/// As DescriptorWatch.isHalfFull. If the kernel does not tell, the sender may wait.
static bool is_unix_half_full(int descriptor, uint64_t bytes, bool listens, int type) {
    struct stat about;
    struct clinux_unix_queue own, sender;
    if (!listens && type != SOCK_STREAM)
        return true;
    int netlink = !listens && bytes == 0 ? -1 : clinux_diag_open();
    if (netlink < 0)
        return listens || bytes > 0;
    bool result = true;
    if (fstat(descriptor, &about) == 0 && clinux_find_unix_queue(netlink, (uint32_t)about.st_ino, &own) == 0) {
        if (listens)
            result = (uint64_t)own.received * 2 > own.sent;
        else if (own.peer == 0)
            result = false;
        else if (clinux_find_unix_queue(netlink, own.peer, &sender) == 0)
            result = (uint64_t)sender.sent * 2 > sender.send_size;
    }
    close(netlink);
    return result;
}

static bool is_half_full(int descriptor, uint64_t bytes) {
    int size = clinux_pipe_size(descriptor);
    // Each write to a pipe with O_DIRECT occupies a slot of its own, so any message counts.
    if (size != -EBADF)
        return bytes > 0 && (size <= 0 || bytes * 2 > (uint64_t)size || clinux_is_packet_pipe(descriptor));
    int listens = 0, type = 0, domain = 0;
    uint32_t used, limit;
    if (option(descriptor, SO_DOMAIN, &domain) == 0 && domain == AF_UNIX) {
        option(descriptor, SO_ACCEPTCONN, &listens);
        option(descriptor, SO_TYPE, &type);
        return is_unix_half_full(descriptor, bytes, listens, type);
    }
    if (option(descriptor, SO_ACCEPTCONN, &listens) == 0 && listens)
        return clinux_tcp_backlog(descriptor, &used, &limit) < 0 || (uint64_t)used * 2 > limit;
    if (bytes == 0 || option(descriptor, SO_TYPE, &type) < 0 || type != SOCK_STREAM)
        return false;
    // Half of the buffer with the kernel's overhead, or half of the window, which is half of the buffer.
    return clinux_receive_buffer(descriptor, &used, &limit) == 0 && (bytes * 4 > limit || (uint64_t)used * 2 > limit);
}

int input_examine(int descriptor, struct clinux_completion *done) {
    union address peer = {0}, own = {0};
    socklen_t length = sizeof peer;
    int bytes = clinux_readable_bytes(descriptor);
    done->bytes = bytes > 0 ? (uint64_t)bytes : 0;
    done->is_half_full = is_half_full(descriptor, done->bytes);
    if (getpeername(descriptor, &peer.any, &length) < 0) {
        // A pipe is local, and so may be those that connect to a socket that listens.
        int listens = 0;
        int problem = errno, domain = 0;
        done->is_local = problem == ENOTSOCK || (option(descriptor, SO_ACCEPTCONN, &listens) == 0 && listens) ||
                         (option(descriptor, SO_DOMAIN, &domain) == 0 && domain == AF_UNIX);
        return 0;
    }
    length = sizeof own;
    if (getsockname(descriptor, &own.any, &length) == 0)
        done->is_local = peer.any.sa_family == AF_UNIX || is_same_host(&peer, &own);
    const struct in_addr *v4 = v4_address(&peer);
    if (v4) {
        done->domain = AF_INET;
        memcpy(done->address, v4, sizeof *v4);
    } else if (peer.any.sa_family == AF_INET6) {
        done->domain = AF_INET6;
        memcpy(done->address, &peer.v6.sin6_addr, sizeof peer.v6.sin6_addr);
    }
    // The port is at the same position in both structures.
    done->port = ntohs(peer.v4.sin_port);
    return 0;
}

void clinux_format_peer(int domain, const uint8_t *address, uint16_t port, struct clinux_peer *peer) {
    char host[INET6_ADDRSTRLEN];
    memset(peer, 0, sizeof *peer);
    if ((domain != AF_INET && domain != AF_INET6) || !inet_ntop(domain, address, host, sizeof host))
        return;
    int written = snprintf(peer->text, sizeof peer->text, domain == AF_INET ? "%s:%u" : "[%s]:%u", host, port);
    peer->length = written > 0 && (size_t)written < sizeof peer->text ? (size_t)written : 0;
}

bool clinux_is_message_queue(int descriptor) {
    struct mq_attr about;
    return syscall(SYS_mq_getsetattr, descriptor, NULL, &about) == 0;
}

bool clinux_lingers(int descriptor) {
    struct linger linger = {0};
    socklen_t length = sizeof linger;
    return getsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, &length) == 0 && linger.l_onoff;
}

int clinux_waiting_descriptors(int descriptor) {
    char path[48], text[512];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", descriptor);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -1;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length < 0)
        return -1;
    text[length] = 0;
    const char *count = strstr(text, "scm_fds:");
    return count ? atoi(count + 8) : -1;
}

// --- AF_UNIX (sock_diag(7)) -----------------------------------------------------------

int clinux_diag_open(void) {
    int descriptor = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
    return descriptor < 0 ? -errno : descriptor;
}

/// Copies a value of an attribute, as far as both are long.
static void copy(void *target, size_t size, const struct nlattr *attribute) {
    size_t length = attribute->nla_len - NLA_HDRLEN;
    memcpy(target, (const char *)attribute + NLA_HDRLEN, length < size ? length : size);
}

static void read_attributes(const char *bytes, size_t length, struct clinux_unix_queue *queue) {
    while (length >= sizeof(struct nlattr)) {
        struct nlattr attribute;
        memcpy(&attribute, bytes, sizeof attribute);
        if (attribute.nla_len < NLA_HDRLEN || attribute.nla_len > length)
            return;
        struct unix_diag_rqlen queued = {0};
        uint32_t memory[SK_MEMINFO_VARS] = {0};
        switch (attribute.nla_type) {
        case UNIX_DIAG_PEER: copy(&queue->peer, sizeof queue->peer, (const struct nlattr *)(const void *)bytes); break;
        case UNIX_DIAG_RQLEN:
            copy(&queued, sizeof queued, (const struct nlattr *)(const void *)bytes);
            queue->received = queued.udiag_rqueue;
            queue->sent = queued.udiag_wqueue;
            break;
        case UNIX_DIAG_MEMINFO:
            copy(memory, sizeof memory, (const struct nlattr *)(const void *)bytes);
            queue->send_size = memory[SK_MEMINFO_SNDBUF];
            break;
        default: break;
        }
        size_t next = NLA_ALIGN(attribute.nla_len);
        if (next > length)
            return;
        bytes += next;
        length -= next;
    }
}

int clinux_find_unix_queue(int netlink, uint32_t inode, struct clinux_unix_queue *queue) {
    struct {
        struct nlmsghdr header;
        struct unix_diag_req request;
    } question = {
        .header = {
            .nlmsg_len = sizeof question, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
        .request = {
            .sdiag_family = AF_UNIX, .udiag_states = UINT32_MAX, .udiag_ino = inode,
            .udiag_show = UDIAG_SHOW_PEER | UDIAG_SHOW_RQLEN | UDIAG_SHOW_MEMINFO,
            .udiag_cookie = {UINT32_MAX, UINT32_MAX}}};
    _Alignas(struct nlmsghdr) char answer[512];
    memset(queue, 0, sizeof *queue);
    // The kernel answers within send(2).
    if (send(netlink, &question, sizeof question, MSG_DONTWAIT) < 0)
        return -errno;
    ssize_t length = recv(netlink, answer, sizeof answer, MSG_DONTWAIT);
    if (length < 0)
        return -errno;
    const struct nlmsghdr *header = (const struct nlmsghdr *)(const void *)answer;
    if ((size_t)length < sizeof *header || header->nlmsg_len > (size_t)length)
        return -EPROTO;
    if (header->nlmsg_type == NLMSG_ERROR) {
        struct nlmsgerr error;
        if (header->nlmsg_len < NLMSG_LENGTH(sizeof error))
            return -EPROTO;
        memcpy(&error, NLMSG_DATA(header), sizeof error);
        return error.error < 0 ? error.error : -EPROTO;
    }
    size_t before = NLMSG_LENGTH(sizeof(struct unix_diag_msg));
    if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY || header->nlmsg_len < before)
        return -EPROTO;
    read_attributes(answer + before, header->nlmsg_len - before, queue);
    return 0;
}
