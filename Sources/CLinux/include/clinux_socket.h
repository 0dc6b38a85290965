#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// The most descriptors that one message can carry (SCM_MAX_FD, unix(7)).
#define CLINUX_MOST_DESCRIPTORS 253

/// The process at the other end of a socket, or the sender of a message.
struct clinux_credentials {
    pid_t pid; // 0 if the process is in a pid namespace that is not visible here
    uid_t uid;
    gid_t gid;
};

struct clinux_message {
    size_t length;          // bytes received
    bool truncated;         // the datagram was longer than the buffer
    bool control_truncated; // not all descriptors arrived
    bool has_sender;
    struct clinux_credentials sender;         // SCM_CREDENTIALS
    int descriptors[CLINUX_MOST_DESCRIPTORS]; // SCM_RIGHTS, close-on-exec; the caller closes them
    size_t descriptor_count;
};

/// A Unix datagram socket at a path, non-blocking, that receives its senders' credentials; or -errno.
/// -ENAMETOOLONG: the path has more than 107 bytes. A socket that exists at the path is removed first.
int clinux_datagram_server(const char *path, mode_t mode);
/// Receives bytes, descriptors and credentials without blocking: 1 with a message, 0 if there is none, or -errno. At the
/// end of a stream the message is empty. With 0 and -errno no descriptor was received.
int clinux_receive(int descriptor, void *buffer, size_t size, struct clinux_message *message);

/// Sends one message with up to two descriptors without blocking: 1, 0 if the socket's buffer is full, or -errno.
int clinux_send(int descriptor, const void *bytes, size_t length, const int *descriptors, size_t count);

/// accept4(2), close-on-exec and non-blocking; or -errno.
int clinux_accept(int listener);
/// SO_PEERCRED (unix(7)); 0 or -errno.
int clinux_peer_credentials(int descriptor, struct clinux_credentials *credentials);
/// The number of bytes that can be read (FIONREAD); 0 if the kernel does not report it.
int clinux_readable_bytes(int descriptor);

/// flock(2), exclusive and non-blocking: 1 if the caller holds the lock now, 0 if another process holds it, or -errno.
int clinux_lock(int descriptor);
/// Releases the lock of clinux_lock().
void clinux_unlock(int descriptor);

/// memfd_create(2), close-on-exec and sealable.
int clinux_memfd(const char *name);
/// Adds seals (F_SEAL_SHRINK and so on).
int clinux_add_seals(int descriptor, int seals);
/// The seals of a memfd; -EINVAL for any other file.
int clinux_get_seals(int descriptor);
/// F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE: neither the contents nor the seals can change any more.
extern const int clinux_all_seals;
/// F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE: neither size nor contents can change any more.
extern const int clinux_content_seals;
/// F_SEAL_SHRINK | F_SEAL_GROW: the size cannot change any more.
extern const int clinux_size_seals;
