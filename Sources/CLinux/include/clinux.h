#pragma once

// Functions that Swift cannot call: system calls without a libc wrapper, GNU names that Swift's Glibc module lacks,
// variadic functions and macros. They return 0 or a result, and -errno on failure, so that Swift never reads errno after
// another call could have changed it.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// "ENOENT" for 2; NULL for a number without a name.
const char *clinux_errno_name(int number);
/// "No such file or directory" for 2; NULL for a number without a text. Unlike strerror, safe in every thread.
const char *clinux_errno_text(int number);

/// open(2) with O_CLOEXEC added. `directory` may be AT_FDCWD. EINTR is retried.
int clinux_openat(int directory, const char *path, int flags, mode_t mode);
/// Opens an entry of a directory, close-on-exec: -EXDEV if a file system is mounted on it, whose server is not asked
/// (openat2(2), RESOLVE_NO_XDEV), and -ELOOP for a symbolic link. Without openat2 a mount is not noticed.
int clinux_open_entry(int directory, const char *name, int flags);
/// O_PATH: the descriptor only names the entry.
extern const int clinux_path_only;
/// Exchanges two files of a directory (renameat2(2), RENAME_EXCHANGE); 0 or -errno.
int clinux_exchange(const char *path, const char *other);
/// Detaches what is mounted on a path, at once (umount2(2), MNT_DETACH). A symbolic link is not followed. 0 or -errno.
int clinux_detach_mount(const char *path);
/// A duplicate with O_CLOEXEC, numbered 3 or higher.
int clinux_duplicate(int descriptor);
/// Makes `number` a duplicate of the descriptor, close-on-exec (dup3(2)).
int clinux_replace(int descriptor, int number);
int clinux_set_nonblocking(int descriptor, bool on);
/// Whether the descriptor is readable within this time (ppoll(2)). A signal ends the wait.
bool clinux_is_readable(int descriptor, int64_t seconds, int64_t nanoseconds);

/// An extended attribute of a path (getxattr(2)), or -errno.
ssize_t clinux_get_attribute(const char *path, const char *name, void *buffer, size_t size);
/// Sets an extended attribute of an open file or folder (fsetxattr(2)): 0 or -errno.
int clinux_set_attribute(int descriptor, const char *name, const char *value);

/// Clears (`inherited`) or sets FD_CLOEXEC.
int clinux_set_inherited(int descriptor, bool inherited);

/// Stores a word with release ordering: a process that maps the same memory and reads the word also sees every earlier
/// store.
static inline void clinux_publish(uint64_t *word, uint64_t value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }

/// Adds 1 to this word when this process dies of SIGABRT or of a fault (SIGSEGV and so on). The word must stay mapped;
/// NULL stops counting. Other signals, SIGKILL among them, are not counted.
void clinux_count_own_end(uint64_t *word);

/// pipe2(2), close-on-exec and non-blocking.
int clinux_pipe(int *ends);
