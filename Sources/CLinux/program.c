#include "program.h"
#include "clinux_program.h"
#include "sha256.h"
#include "spawn_numbers.h"
#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fsverity.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <string.h>
#include <sys/stat.h>

// linux/mount.h and sys/mount.h cannot be included together.
#ifndef MS_REC
#define MS_REC 16384
#define MS_SLAVE (1 << 19)
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif
#ifndef CLONE_NEWNS
#define CLONE_NEWNS 0x00020000
#endif

/// As CHILD (syscalls.h), for functions that spawn.c calls.
#define CALLED_BY_CHILD __attribute__((no_sanitize("address", "thread", "undefined")))

enum { PIECE = 8 * 1024 };

_Static_assert((int)SHA256_SIZE == (int)CLINUX_DIGEST_SIZE, "fs-verity and SHA-256 have digests of one size here");

// MARK: The folder

/// Writes the folder of a program, without symbolic links, into `folder` (PATH_MAX bytes). 0 or -errno.
CHILD long find_folder(const char *program, char *folder) {
    long file = raw4(SYS_openat, AT_FDCWD, program, O_PATH | O_CLOEXEC, 0);
    if (file < 0)
        return file;
    char link[sizeof "/proc/self/fd/" + PID_DIGITS * 2] = "/proc/self/fd/";
    write_number(link + sizeof "/proc/self/fd/" - 1, file);
    long length = raw4(SYS_readlinkat, AT_FDCWD, link, folder, PATH_MAX - 1);
    raw1(SYS_close, file);
    if (length < 0)
        return length;
    // A longer path is cut off without an error.
    if (length == PATH_MAX - 1)
        return -ENAMETOOLONG;
    while (length > 0 && folder[length - 1] != '/')
        length--;
    // That of a file in / is not "": all of the machine would be read-only.
    if (length <= 1)
        return -EINVAL;
    folder[length - 1] = 0;
    return 0;
}

/// Mounts a read-only copy of the folder on itself, with the other flags as they are. 0 or -errno.
CHILD long mount_read_only(const char *folder) {
    long tree = raw3(SYS_open_tree, AT_FDCWD, folder, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (tree < 0)
        return tree;
    struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY};
    long result =
        raw5(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof attributes);
    if (result >= 0)
        result = raw5(SYS_move_mount, tree, "", AT_FDCWD, folder, MOVE_MOUNT_F_EMPTY_PATH);
    raw1(SYS_close, tree);
    return result;
}

CALLED_BY_CHILD long program_protect(const char *program, bool keeps_working_directory) {
    char path[PATH_MAX];
    long result = raw1(SYS_unshare, CLONE_NEWNS);
    if (result >= 0)
        result = raw5(SYS_mount, 0, "/", 0, MS_REC | MS_SLAVE, 0);
    if (result >= 0)
        result = find_folder(program, path);
    if (result >= 0)
        result = mount_read_only(path);
    if (result >= 0 && keeps_working_directory) {
        result = raw2(SYS_getcwd, path, sizeof path);
        if (result >= 0)
            result = raw1(SYS_chdir, path);
    }
    return result < 0 ? result : 0;
}

// MARK: The digest

CHILD long open_regular(const char *program) {
    // First without opening it: to open a device could have an effect.
    long found = raw4(SYS_openat, AT_FDCWD, program, O_PATH | O_CLOEXEC, 0);
    if (found < 0)
        return found;
    struct stat status;
    long result = raw2(SYS_fstat, found, &status);
    if (result >= 0 && !S_ISREG(status.st_mode))
        result = -EACCES;
    if (result >= 0) {
        char link[sizeof "/proc/self/fd/" + PID_DIGITS * 2] = "/proc/self/fd/";
        write_number(link + sizeof "/proc/self/fd/" - 1, found);
        result = raw4(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC | O_NOCTTY, 0);
    }
    raw1(SYS_close, found);
    return result;
}

CHILD long hash_file(int file, uint8_t *digest) {
    struct sha256 hash;
    uint8_t piece[PIECE];
    sha256_begin(&hash);
    long offset = 0;
    for (;;) {
        long count = raw4(SYS_pread64, file, piece, sizeof piece, offset);
        if (count == -EINTR)
            continue;
        if (count < 0)
            return count;
        if (count == 0)
            break;
        sha256_add(&hash, piece, (size_t)count);
        offset += count;
    }
    sha256_end(&hash, digest);
    return 0;
}

CHILD long measure_verity(int file, uint8_t *digest) {
    union {
        struct fsverity_digest digest;
        uint8_t bytes[sizeof(struct fsverity_digest) + CLINUX_DIGEST_SIZE];
    } measured = {.bytes = {0}};
    measured.digest.digest_size = CLINUX_DIGEST_SIZE;
    long result = raw3(SYS_ioctl, file, FS_IOC_MEASURE_VERITY, &measured);
    if (result < 0)
        return result;
    if (measured.digest.digest_algorithm != FS_VERITY_HASH_ALG_SHA256)
        return -EOVERFLOW;
    for (int i = 0; i < CLINUX_DIGEST_SIZE; i++)
        digest[i] = measured.bytes[sizeof(struct fsverity_digest) + (size_t)i];
    return 0;
}

CHILD long read_digest(int file, int kind, uint8_t *digest) {
    return kind == CLINUX_DIGEST_FS_VERITY ? measure_verity(file, digest) : hash_file(file, digest);
}

CALLED_BY_CHILD long program_check(const char *program, int kind, uint8_t *digest, int *stage) {
    *stage = CLINUX_STAGE_EXECUTABLE;
    long file = open_regular(program);
    if (file < 0)
        return file;
    *stage = CLINUX_STAGE_PROGRAM_DIGEST;
    uint8_t found[CLINUX_DIGEST_SIZE];
    long result = read_digest((int)file, kind, found);
    if (result >= 0) {
        for (int i = 0; i < CLINUX_DIGEST_SIZE; i++) {
            if (found[i] != digest[i])
                result = -EBADMSG;
            digest[i] = found[i];
        }
    }
    if (result < 0) {
        raw1(SYS_close, file);
        return result;
    }
    return file;
}

CALLED_BY_CHILD bool program_is_elf(int file) {
    char first[4] = {0};
    return raw4(SYS_pread64, file, first, sizeof first, 0) == sizeof first && first[0] == 0x7f && first[1] == 'E' &&
           first[2] == 'L' && first[3] == 'F';
}

int clinux_program_digest(const char *program, int kind, uint8_t *digest) {
    long file = open_regular(program);
    if (file < 0)
        return (int)file;
    long result = read_digest((int)file, kind, digest);
    raw1(SYS_close, file);
    return (int)result;
}
