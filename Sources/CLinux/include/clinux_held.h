#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Listening sockets that the daemon holds for apps, as systemd.socket(5) makes them.

enum { CLINUX_ADDRESS = 128 };

/// The address of a socket (struct sockaddr).
struct clinux_address {
    uint32_t length;
    uint8_t bytes[CLINUX_ADDRESS];
};

/// `text`: an address without brackets, of IPv6 perhaps with an interface (`fe80::1%eth0`); NULL: all addresses of the
/// machine. Returns 0, -EINVAL, or -ENODEV for an unknown interface.
int clinux_internet_address(struct clinux_address *address, int domain, const char *text, uint16_t port);
/// An address of AF_UNIX: a path or, if `is_abstract`, an abstract name. Returns 0, -EINVAL, or -ENAMETOOLONG.
int clinux_unix_address(struct clinux_address *address, const char *name, size_t length, bool is_abstract);

struct clinux_bound_socket {
    int descriptor;
    /// What has failed: "socket", "bind".
    const char *call;
};

struct clinux_bind_options {
    /// SOCK_STREAM, SOCK_DGRAM or SOCK_SEQPACKET.
    int type;
    /// Of the file of an AF_UNIX address with a path. The file has it from the start, whatever the umask.
    mode_t mode;
    /// IPV6_V6ONLY of an address of IPv6; -1: net.ipv6.bindv6only decides.
    int v6only;
    /// SO_REUSEPORT and IP_FREEBIND or IPV6_FREEBIND, of addresses of the internet.
    bool reuses_port, is_free;
};

/// Creates and binds a socket, close-on-exec. It does not listen yet. Returns 0 or -errno.
int clinux_bind(
    const struct clinux_address *address, const struct clinux_bind_options *options, struct clinux_bound_socket *result);
/// Whether a socket was bound with these values of `v6only` and `reuses_port`, as far as they concern it. SO_REUSEPORT without
/// need is no difference: a process that shares the socket may have set it.
bool clinux_is_bound_with(int descriptor, const struct clinux_bind_options *options);
/// Sets SO_KEEPALIVE and TCP_NODELAY of a listening TCP socket, which its connections inherit. Returns 0 or -errno.
int clinux_set_connection_options(int descriptor, bool keep_alive, bool no_delay);
/// listen(2) without a limit of its own beyond `backlog`; 0 or -errno.
int clinux_listen(int descriptor, uint32_t backlog);

enum clinux_socket_state {
    /// It is a socket of this type with this address; one that accepts connections listens, and a datagram socket has no peer.
    CLINUX_SOCKET_USABLE = 0,
    /// It is another socket.
    CLINUX_SOCKET_OTHER,
    /// It is the socket, and a process that shares it has shut it down, or has connected it.
    CLINUX_SOCKET_SHUT_DOWN,
};
enum clinux_socket_state clinux_socket_state(int descriptor, const struct clinux_address *address, int type);

/// Changes the owner of the file that a descriptor names (O_PATH), whatever its path leads to by now; 0 or -errno.
int clinux_change_owner(int descriptor, uid_t uid, gid_t gid);

/// The inode of a descriptor; 0 if it fails.
uint64_t clinux_inode(int descriptor);

/// Accepts a connection and resets it (SO_LINGER with zero seconds). Returns 1, 0 if none waits, or -errno. The listening socket
/// has to be non-blocking.
int clinux_reject(int listener);

/// inotify_add_watch(2) for changes of the entries of a folder and of the folder itself: the number of the watch, or -errno.
int clinux_watch_folder(int inotify, const char *path);
/// inotify_rm_watch(2)
void clinux_unwatch_folder(int inotify, int watch);
/// Reads changes without blocking and writes the numbers of their watches, each possibly several times; -1 stands for all
/// (IN_Q_OVERFLOW). Returns how many, 0 if there are none, or -errno.
int clinux_read_changes(int inotify, int *watches, size_t capacity);
