#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// The most descriptors that one message can carry (SCM_MAX_FD, unix(7)).
#define CLINUX_MOST_DESCRIPTORS 253

struct clinux_datagram {
    size_t length;  // bytes received
    bool truncated; // it was longer than the buffer
    bool control_truncated;
    bool has_sender;
    pid_t pid; // as the kernel saw it; 0: of a pid namespace that we cannot see
    uid_t uid;
    gid_t gid;
    int descriptors[CLINUX_MOST_DESCRIPTORS]; // close-on-exec; the caller closes them
    size_t descriptor_count;
};

/// A Unix datagram socket at a path, non-blocking, that receives its senders' credentials; or -errno.
/// -ENAMETOOLONG: the path has more than 107 bytes. Whatever socket was there is removed first.
int clinux_datagram_server(const char *path, mode_t mode);
/// 1 with a datagram, 0 when there is none, or -errno. With -errno and 0 no descriptor was kept.
int clinux_receive(int descriptor, void *buffer, size_t size, struct clinux_datagram *datagram);

/// flock(2), exclusive and without waiting: 1 if it is ours now, 0 if somebody else has it, or -errno.
int clinux_lock(int descriptor);

/// memfd_create(2), close-on-exec and sealable.
int clinux_memfd(const char *name);
/// Adds seals (F_SEAL_SHRINK and so on).
int clinux_add_seals(int descriptor, int seals);
/// Its seals; -EINVAL for what cannot be sealed.
int clinux_get_seals(int descriptor);
/// F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE: nothing about it can change any more.
extern const int clinux_all_seals;
/// Those that keep the size.
extern const int clinux_size_seals;
