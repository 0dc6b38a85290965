#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Descriptors of another process: what they are, duplicates of them, and what can be read at them. Nothing here reads or
// writes at a descriptor of another process.

enum clinux_descriptor_kind {
    /// Nothing arrives there: a regular file, a folder, a device that is not watched.
    CLINUX_DESCRIPTOR_IGNORED = 0,
    CLINUX_DESCRIPTOR_SOCKET,
    /// A pipe or FIFO.
    CLINUX_DESCRIPTOR_PIPE,
    CLINUX_DESCRIPTOR_TERMINAL,
    CLINUX_DESCRIPTOR_TIMERFD,
    CLINUX_DESCRIPTOR_EVENTFD,
    /// inotify(7) or fanotify(7).
    CLINUX_DESCRIPTOR_INOTIFY,
    CLINUX_DESCRIPTOR_PIDFD,
    CLINUX_DESCRIPTOR_EPOLL,
    CLINUX_DESCRIPTOR_SIGNALFD,
    CLINUX_DESCRIPTOR_IO_URING,
    /// The other end of a FUSE file system, a TUN interface, an input device.
    CLINUX_DESCRIPTOR_DEVICE,
    /// Perhaps a POSIX message queue: `clinux_is_message_queue` of a duplicate tells.
    CLINUX_DESCRIPTOR_MAYBE_QUEUE,
    /// An anonymous inode of a kind that is not known here.
    CLINUX_DESCRIPTOR_UNKNOWN,
    /// EACCES: the process may not be examined.
    CLINUX_DESCRIPTOR_NOT_PERMITTED,
};

enum { CLINUX_DESCRIPTOR_NAME = 24 };

struct clinux_descriptor_entry {
    int32_t number;
    int32_t kind;
    /// Of a socket, pipe or FIFO; otherwise 0.
    uint64_t inode;
    /// Of a FIFO: its device. A socket and a pipe have 0.
    uint64_t device;
    /// Of a pipe or FIFO.
    bool can_read, can_write;
    /// Of an unknown one: the name that the kernel gives it, with a NUL.
    char name[CLINUX_DESCRIPTOR_NAME];
};

/// Returns how many names the file at a path has, as far as the kernel knows, or -errno. The file system is not asked: one in
/// user space or on a server may never answer.
int64_t clinux_known_links(const char *path);

/// The most entries that one call of `clinux_list_descriptors` returns.
extern const unsigned clinux_most_entries;
/// The next descriptors of a process, in ascending order: how many, 0 at the end, or -errno.
/// \param folder an open folder /proc/PID/fd. Its offset tells where to continue.
/// \param entries at least `clinux_most_entries`.
/// No file is opened, and no file system is asked for anything: one in user space may never answer.
int clinux_list_descriptors(int folder, struct clinux_descriptor_entry *entries);

/// Describes one descriptor of a table. Returns 0, or -errno: ENOENT if it is closed.
int clinux_describe_descriptor(int folder, int number, struct clinux_descriptor_entry *entry);

/// pidfd_getfd(2): a duplicate of a descriptor of another process, close-on-exec; or -errno.
int clinux_pidfd_getfd(int pidfd, int number);
/// Whether the file of a descriptor, which is not a descriptor of this process alone, is open nowhere else: the kernel grants a lease for
/// writing (F_SETLEASE), which is given back at once. False if that cannot be known. A program that opens the file in these
/// microseconds waits so long; the kernel sends this process SIGIO then, which it has to ignore.
bool clinux_is_only_open_file(int descriptor);
/// Closes descriptors. Adjacent numbers that follow each other are closed together (close_range(2)).
void clinux_close_all(const int *numbers, size_t count);

enum clinux_target_flags {
    /// The file is a socket, a pipe, or on the file system of /dev. To ask it whether it is ready waits for no program. What is
    /// on another file system may be a file of a FUSE server, or an epoll descriptor that watches one.
    CLINUX_TARGET_IN_KERNEL = 1,
    /// The descriptor that has the number now is of the same file (kcmp(2)). Not asked for sockets and pipes, whose inode
    /// tells, nor beyond the first 64, and not set where kcmp(2) is not available.
    CLINUX_TARGET_IS_SAME = 2,
};

/// One of the descriptors that an epoll descriptor watches.
struct clinux_epoll_target {
    int32_t number;
    uint32_t flags;
    uint64_t inode;
};
/// Reads all lines of /proc/PID/fdinfo/FD of an epoll descriptor (proc_pid_fdinfo(5)) and writes the targets to `output`.
/// Returns 0 and their number, -E2BIG for more than 131,072, or -errno. It can block: see CLINUX_JOB_LIST_TARGETS.
/// \param thread has the epoll descriptor with this number.
int clinux_list_targets(int file, pid_t thread, int number, int output, uint64_t *count);

/// kcmp(2): 1 if two threads of a process have the same descriptor table, 0 if not, or -errno. Where kcmp(2) is not
/// available, two tables with the same number of descriptors count as the same one (Linux 6.2), or any two.
int clinux_share_descriptors(pid_t process, pid_t one, pid_t other);
/// How many threads a process has, by the links of its folder; or -errno.
int64_t clinux_count_threads(const char *task_folder);

/// epoll_create1(2), close-on-exec; or -errno.
int clinux_epoll_create(void);
/// EPOLL_CTL_ADD (`is_new`) or EPOLL_CTL_MOD; 0 or -errno.
int clinux_epoll_set(int epoll, int descriptor, uint32_t events, uint64_t data, bool is_new);
int clinux_epoll_remove(int epoll, int descriptor);
struct clinux_epoll_event {
    uint32_t events;
    uint64_t data;
};
/// The most events that one call of `clinux_epoll_take` returns.
extern const unsigned clinux_most_events;
/// epoll_wait(2) that never blocks: the number of events, at most `most` and `clinux_most_events`, or -errno.
int clinux_epoll_take(int epoll, struct clinux_epoll_event *events, int most);

/// poll(2) of one descriptor that never blocks: its events as of epoll(7); 0 if it fails.
uint32_t clinux_poll_now(int descriptor, uint32_t events);

struct clinux_socket {
    int domain; // AF_UNIX and so on
    int type;   // SOCK_STREAM and so on
    int protocol;
    bool listens;
    bool lingers; // SO_LINGER: the last close(2) can block
};
/// 0 or -errno.
int clinux_describe_socket(int descriptor, struct clinux_socket *socket);

enum { CLINUX_PEER = 128 };

/// The other end of a connected socket.
struct clinux_peer {
    size_t length;
    char text[CLINUX_PEER]; // `192.0.2.7:80`, `[2001:db8::1]:80`, `/run/app.sock`, `@abstract`; without a NUL
    bool is_local;          // on this machine
    pid_t pid;              // of an AF_UNIX peer without an address, or 0
};
void clinux_describe_peer(int descriptor, int domain, struct clinux_peer *peer);

/// How much of a socket's receive buffer is used, in bytes with the kernel's overhead (SO_MEMINFO); 0 or -errno.
int clinux_receive_buffer(int descriptor, uint32_t *used, uint32_t *size);
/// How many connections wait at a listening TCP socket, and how many can; 0 or -errno.
int clinux_tcp_backlog(int descriptor, uint32_t *waiting, uint32_t *limit);
/// The size of a pipe in bytes (F_GETPIPE_SZ), or -errno.
int clinux_pipe_size(int descriptor);
/// Whether each write(2) to a pipe occupies a slot of its own (O_DIRECT, pipe(2)).
bool clinux_is_packet_pipe(int descriptor);
/// The text of an address that CLINUX_JOB_EXAMINE_INPUT has found.
void clinux_format_peer(int domain, const uint8_t *address, uint16_t port, struct clinux_peer *peer);
/// Whether SO_LINGER is set now.
bool clinux_lingers(int descriptor);
/// Whether the descriptor is a POSIX message queue (mq_overview(7)).
bool clinux_is_message_queue(int descriptor);
/// How many descriptors wait in messages of an AF_UNIX socket, as /proc/self/fdinfo says; -1: not known.
int clinux_waiting_descriptors(int descriptor);

/// A netlink socket for `clinux_find_unix_queue` (sock_diag(7)); or -errno.
int clinux_diag_open(void);
struct clinux_unix_queue {
    uint32_t received; // bytes that were not read; of a listening socket: connections that wait
    uint32_t sent;     // bytes with overhead that the peer has not read; of a listening socket: how many can wait
    uint32_t send_size; // the size of the send buffer
    uint32_t peer;      // the peer's inode, or 0
};
/// What the kernel counts for an AF_UNIX socket of this network namespace; 0 or -errno.
int clinux_find_unix_queue(int netlink, uint32_t inode, struct clinux_unix_queue *queue);
