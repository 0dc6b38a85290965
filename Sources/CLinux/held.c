#include "clinux_held.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

// MARK: Addresses

static int set_address(struct clinux_address *address, const void *bytes, size_t length) {
    memset(address, 0, sizeof *address);
    memcpy(address->bytes, bytes, length);
    address->length = (uint32_t)length;
    return 0;
}

int clinux_internet_address(struct clinux_address *address, int domain, const char *text, uint16_t port) {
    if (domain == AF_INET) {
        struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
        if (text && inet_pton(AF_INET, text, &four.sin_addr) != 1)
            return -EINVAL;
        return set_address(address, &four, sizeof four);
    }
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    const char *interface = text ? strchr(text, '%') : NULL;
    char plain[INET6_ADDRSTRLEN];
    if (interface) {
        size_t length = (size_t)(interface - text);
        if (length >= sizeof plain)
            return -EINVAL;
        memcpy(plain, text, length);
        plain[length] = 0;
        text = plain;
        six.sin6_scope_id = if_nametoindex(interface + 1);
        if (six.sin6_scope_id == 0)
            return -ENODEV;
    }
    if (text && inet_pton(AF_INET6, text, &six.sin6_addr) != 1)
        return -EINVAL;
    return set_address(address, &six, sizeof six);
}

int clinux_unix_address(struct clinux_address *address, const char *name, size_t length, bool is_abstract) {
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    if (length == 0 || memchr(name, 0, length))
        return -EINVAL;
    // One byte for the NUL: before an abstract name, or behind a path.
    if (length + 1 > sizeof local.sun_path)
        return -ENAMETOOLONG;
    memcpy(local.sun_path + (is_abstract ? 1 : 0), name, length);
    return set_address(address, &local, offsetof(struct sockaddr_un, sun_path) + length + 1);
}

static int domain_of(const struct clinux_address *address) {
    sa_family_t family;
    memcpy(&family, address->bytes + offsetof(struct sockaddr, sa_family), sizeof family);
    return family;
}

/// Whether a socket has this address. The kernel reports the length of a path with or without its NUL.
static bool has_address(int descriptor, const struct clinux_address *address) {
    struct sockaddr_storage own = {0};
    socklen_t length = sizeof own;
    if (getsockname(descriptor, (struct sockaddr *)&own, &length) < 0 || own.ss_family != domain_of(address))
        return false;
    if (own.ss_family == AF_INET) {
        struct sockaddr_in one, other;
        memcpy(&one, &own, sizeof one);
        memcpy(&other, address->bytes, sizeof other);
        return one.sin_port == other.sin_port && one.sin_addr.s_addr == other.sin_addr.s_addr;
    }
    if (own.ss_family == AF_INET6) {
        struct sockaddr_in6 one, other;
        memcpy(&one, &own, sizeof one);
        memcpy(&other, address->bytes, sizeof other);
        return one.sin6_port == other.sin6_port && memcmp(&one.sin6_addr, &other.sin6_addr, sizeof one.sin6_addr) == 0 &&
               (other.sin6_scope_id == 0 || one.sin6_scope_id == other.sin6_scope_id);
    }
    const size_t head = offsetof(struct sockaddr_un, sun_path);
    if (own.ss_family != AF_UNIX || length <= head)
        return false;
    const char *path = (const char *)&own + head;
    // The bytes behind the address are zero on both sides.
    if (path[0] == 0)
        return length == address->length && memcmp(&own, address->bytes, length) == 0;
    return memcmp(&own, address->bytes, sizeof(struct sockaddr_un)) == 0;
}

// MARK: Sockets

/// The options that bind(2) depends on.
static int set_bind_options(int made, int domain, const struct clinux_bind_options *options) {
    const int on = 1;
    if (domain == AF_UNIX)
        return 0;
    // With it two datagram sockets could have the same port.
    if (options->type == SOCK_STREAM && setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0)
        return -1;
    if (domain == AF_INET6 && options->v6only >= 0 &&
        setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &options->v6only, sizeof options->v6only) < 0)
        return -1;
    if (options->reuses_port && setsockopt(made, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) < 0)
        return -1;
    if (!options->is_free)
        return 0;
    return domain == AF_INET6 ? setsockopt(made, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof on)
                              : setsockopt(made, IPPROTO_IP, IP_FREEBIND, &on, sizeof on);
}

int clinux_bind(
    const struct clinux_address *address, const struct clinux_bind_options *options, struct clinux_bound_socket *result) {
    int domain = domain_of(address);
    result->call = "socket";
    int made = socket(domain, options->type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0)
        return -errno;
    result->call = "setsockopt";
    int failed = set_bind_options(made, domain, options);
    if (!failed) {
        result->call = "bind";
        // bind(2) gives the file the mode of the socket, less the umask. Other threads of this process create no files.
        bool has_path = domain == AF_UNIX && address->bytes[offsetof(struct sockaddr_un, sun_path)] != 0;
        mode_t before = has_path ? umask(0) : 0;
        if (has_path)
            failed = fchmod(made, options->mode);
        if (!failed)
            failed = bind(made, (const struct sockaddr *)address->bytes, address->length);
        int error = errno;
        if (has_path)
            umask(before);
        errno = error;
    }
    if (failed) {
        int error = -errno;
        close(made);
        return error;
    }
    result->descriptor = made;
    return 0;
}

int clinux_listen(int descriptor, uint32_t backlog) {
    return listen(descriptor, backlog > INT_MAX ? INT_MAX : (int)backlog) < 0 ? -errno : 0;
}

static int option(int descriptor, int level, int name) {
    int value = -1;
    socklen_t length = sizeof value;
    return getsockopt(descriptor, level, name, &value, &length) < 0 ? -1 : value;
}

bool clinux_is_bound_with(int descriptor, const struct clinux_bind_options *options) {
    int domain = option(descriptor, SOL_SOCKET, SO_DOMAIN);
    if (domain == AF_INET6 && options->v6only >= 0 && option(descriptor, IPPROTO_IPV6, IPV6_V6ONLY) != options->v6only)
        return false;
    return domain == AF_UNIX || !options->reuses_port || option(descriptor, SOL_SOCKET, SO_REUSEPORT) == 1;
}

int clinux_set_connection_options(int descriptor, bool keep_alive, bool no_delay) {
    const int keep = keep_alive, fast = no_delay;
    if (setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &keep, sizeof keep) < 0)
        return -errno;
    return setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &fast, sizeof fast) < 0 ? -errno : 0;
}

enum clinux_socket_state clinux_socket_state(int descriptor, const struct clinux_address *address, int type) {
    int domain = domain_of(address);
    if (option(descriptor, SOL_SOCKET, SO_DOMAIN) != domain || option(descriptor, SOL_SOCKET, SO_TYPE) != type)
        return CLINUX_SOCKET_OTHER;
    if (domain != AF_UNIX) {
        int protocol = option(descriptor, SOL_SOCKET, SO_PROTOCOL);
        if (protocol != (type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP))
            return CLINUX_SOCKET_OTHER;
    }
    if (!has_address(descriptor, address))
        return CLINUX_SOCKET_OTHER;
    if (type != SOCK_DGRAM && option(descriptor, SOL_SOCKET, SO_ACCEPTCONN) != 1)
        return CLINUX_SOCKET_SHUT_DOWN;
    if (type == SOCK_DGRAM) {
        struct sockaddr_storage peer;
        socklen_t length = sizeof peer;
        if (getpeername(descriptor, (struct sockaddr *)&peer, &length) == 0)
            return CLINUX_SOCKET_SHUT_DOWN;
    }
    struct pollfd polled = {.fd = descriptor, .events = POLLRDHUP};
    if (poll(&polled, 1, 0) > 0 && polled.revents & (POLLHUP | POLLRDHUP))
        return CLINUX_SOCKET_SHUT_DOWN;
    return CLINUX_SOCKET_USABLE;
}

int clinux_change_owner(int descriptor, uid_t uid, gid_t gid) {
    return fchownat(descriptor, "", uid, gid, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

uint64_t clinux_inode(int descriptor) {
    struct stat about;
    return fstat(descriptor, &about) < 0 ? 0 : about.st_ino;
}

int clinux_reject(int listener) {
    const struct linger reset = {.l_onoff = 1, .l_linger = 0};
    int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return 0;
        // This connection is gone (accept(2)); the next one may not be.
        switch (errno) {
        case EINTR:
        case ECONNABORTED:
        case ENETDOWN:
        case EPROTO:
        case ENOPROTOOPT:
        case EHOSTDOWN:
        case ENONET:
        case EHOSTUNREACH:
        case ENETUNREACH: return 1;
        default: return -errno;
        }
    }
    setsockopt(connection, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(connection);
    return 1;
}

// MARK: Folders

int clinux_watch_folder(int inotify, const char *path) {
    uint32_t events = IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
    int watch = inotify_add_watch(inotify, path, events);
    return watch < 0 ? -errno : watch;
}

void clinux_unwatch_folder(int inotify, int watch) { inotify_rm_watch(inotify, watch); }

int clinux_read_changes(int inotify, int *watches, size_t capacity) {
    char buffer[4096] __attribute__((aligned(8)));
    if (capacity < sizeof buffer / sizeof(struct inotify_event))
        return -EINVAL;
    ssize_t length;
    do
        length = read(inotify, buffer, sizeof buffer);
    while (length < 0 && errno == EINTR);
    if (length < 0)
        return errno == EAGAIN ? 0 : -errno;
    int count = 0;
    for (char *next = buffer; next < buffer + length;) {
        struct inotify_event *event = (struct inotify_event *)next;
        watches[count++] = event->wd;
        next += sizeof *event + event->len;
    }
    return count;
}
