#include "clinux_protect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fscrypt.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_BUSY = 16, SHORTEST_KEY = 16 };

static int fail(const char *what) {
    printf("%s: %s\n", what, strerror(errno));
    return 1;
}

const char *clinux_protect_problem(int error) {
    switch (error) {
    case 0: return NULL;
    case ENODATA: return "it is not encrypted; expected a directory with an fscrypt policy of version 2";
    case EPROTOTYPE: return "it has an encryption policy of version 1; expected version 2";
    case ENOTTY:
    case EOPNOTSUPP: return "its file system, or the kernel, has no fscrypt (ext4, f2fs and ubifs can have it)";
    default: return strerror(error);
    }
}

/// The folder that has the directory: while the directory itself is open it cannot be locked.
static int parent(int descriptor) {
    struct stat own, other;
    int found = openat(descriptor, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (found < 0) return descriptor;
    if (fstat(descriptor, &own) == 0 && fstat(found, &other) == 0 && own.st_dev == other.st_dev) {
        close(descriptor);
        return found;
    }
    close(found);
    return descriptor;
}

/// A descriptor of the file system, and the identifier of the directory's key; or -errno (`clinux_protect_problem`).
static int open_directory(const char *directory, __u8 identifier[FSCRYPT_KEY_IDENTIFIER_SIZE]) {
    int descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0) return -errno;
    struct fscrypt_get_policy_ex_arg argument = {.policy_size = sizeof argument.policy};
    int error = ioctl(descriptor, FS_IOC_GET_ENCRYPTION_POLICY_EX, &argument) < 0 ? errno : 0;
    if (error == 0 && argument.policy.version != FSCRYPT_POLICY_V2) error = EPROTOTYPE;
    if (error) {
        close(descriptor);
        return -error;
    }
    memcpy(identifier, argument.policy.v2.master_key_identifier, FSCRYPT_KEY_IDENTIFIER_SIZE);
    return parent(descriptor);
}

int clinux_protect_check(const char *directory) {
    __u8 identifier[FSCRYPT_KEY_IDENTIFIER_SIZE];
    int descriptor = open_directory(directory, identifier);
    if (descriptor < 0) return -descriptor;
    close(descriptor);
    return 0;
}

/// Whether a link in /proc refers to the directory or what is in it.
static bool is_inside(const char *link, const char *directory) {
    char target[PATH_MAX];
    size_t size = strlen(directory);
    ssize_t length = readlink(link, target, sizeof target - 1);
    if (length < 0) return false;
    target[length] = 0;
    return !strncmp(target, directory, size) && (target[size] == '/' || target[size] == 0);
}

static bool is_busy(const char *pid, const char *directory) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%s/cwd", pid);
    bool found = is_inside(path, directory);
    snprintf(path, sizeof path, "/proc/%s/fd", pid);
    DIR *files = found ? NULL : opendir(path);
    if (!files) return found;
    for (struct dirent *entry; !found && (entry = readdir(files));) {
        snprintf(path, sizeof path, "/proc/%s/fd/%s", pid, entry->d_name);
        found = is_inside(path, directory);
    }
    closedir(files);
    return found;
}

static void print_busy(const char *directory) {
    char path[PATH_MAX], name[64], real[PATH_MAX];
    DIR *processes = opendir("/proc");
    if (!processes || !realpath(directory, real)) return;
    int left = MOST_BUSY;
    for (struct dirent *entry; left > 0 && (entry = readdir(processes));) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || !is_busy(entry->d_name, real)) continue;
        snprintf(path, sizeof path, "/proc/%s/comm", entry->d_name);
        FILE *file = fopen(path, "re");
        if (!file || !fgets(name, sizeof name, file)) continue;
        fclose(file);
        name[strcspn(name, "\n")] = 0;
        printf("busy %s %s\n", entry->d_name, name);
        left--;
    }
    closedir(processes);
}

static int lock_directory(int descriptor, const char *directory, const __u8 *identifier) {
    struct fscrypt_remove_key_arg argument = {.key_spec.type = FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER};
    memcpy(argument.key_spec.u.identifier, identifier, FSCRYPT_KEY_IDENTIFIER_SIZE);
    // Other users may have added the same key, as at their login. Only a process with CAP_SYS_ADMIN can remove theirs.
    int status = ioctl(descriptor, FS_IOC_REMOVE_ENCRYPTION_KEY_ALL_USERS, &argument);
    if (status < 0 && errno == EACCES) status = ioctl(descriptor, FS_IOC_REMOVE_ENCRYPTION_KEY, &argument);
    if (status < 0) return errno == ENOKEY ? 0 : fail("cannot remove its key");
    if (argument.removal_status_flags & FSCRYPT_KEY_REMOVAL_STATUS_FLAG_OTHER_USERS) {
        puts("another user has added the key, too");
        return 1;
    }
    if (argument.removal_status_flags & FSCRYPT_KEY_REMOVAL_STATUS_FLAG_FILES_BUSY) {
        puts("busy");
        print_busy(directory);
    }
    return 0;
}

/// Reads what a command prints. -1: it cannot be started, fails, or prints too much.
static ssize_t read_key(char *const *command, __u8 *key, size_t size) {
    int ends[2], status;
    size_t count = 0;
    if (pipe2(ends, O_CLOEXEC) < 0) return -1;
    pid_t child = fork();
    if (child == 0) {
        // It ends with this process, which is killed if it takes too long.
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], STDOUT_FILENO);
        execv(command[0], command);
        _exit(127);
    }
    close(ends[1]);
    while (child > 0 && count < size) {
        ssize_t got = read(ends[0], key + count, size - count);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        count += (size_t)got;
    }
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return -1;
    return (ssize_t)count;
}

static int unlock_directory(int descriptor, const __u8 *identifier, char *const *command) {
    // A byte more than a key has: more is an error.
    _Alignas(struct fscrypt_add_key_arg) __u8 buffer[sizeof(struct fscrypt_add_key_arg) + FSCRYPT_MAX_KEY_SIZE + 1] = {0};
    struct fscrypt_add_key_arg *add = (struct fscrypt_add_key_arg *)buffer;
    add->key_spec.type = FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER;
    int status = 1;
    ssize_t count = read_key(command, add->raw, FSCRYPT_MAX_KEY_SIZE + 1);
    add->raw_size = (__u32)count;
    if (count < 0) printf("%s failed\n", command[0]);
    else if (count < SHORTEST_KEY || count > FSCRYPT_MAX_KEY_SIZE)
        printf("%s printed a key of %zd bytes or more; expected %d to %d\n", command[0], count, SHORTEST_KEY, FSCRYPT_MAX_KEY_SIZE);
    else if (ioctl(descriptor, FS_IOC_ADD_ENCRYPTION_KEY, add) < 0)
        fail("cannot add its key");
    else if (memcmp(add->key_spec.u.identifier, identifier, FSCRYPT_KEY_IDENTIFIER_SIZE)) {
        printf("%s printed the key of another directory\n", command[0]);
        struct fscrypt_remove_key_arg wrong = {.key_spec = add->key_spec};
        ioctl(descriptor, FS_IOC_REMOVE_ENCRYPTION_KEY, &wrong);
    } else
        status = 0;
    explicit_bzero(buffer, sizeof buffer);
    return status;
}

int clinux_protect(const char *verb, const char *directory, char *const *command) {
    __u8 identifier[FSCRYPT_KEY_IDENTIFIER_SIZE];
    int status = 0;
    // No core dump has the key, and no other process of the user can read it.
    prctl(PR_SET_DUMPABLE, 0);
    int descriptor = open_directory(directory, identifier);
    if (descriptor < 0) {
        status = 1;
        puts(clinux_protect_problem(-descriptor));
    } else if (!strcmp(verb, "lock")) status = lock_directory(descriptor, directory, identifier);
    else if (!strcmp(verb, "unlock")) status = unlock_directory(descriptor, identifier, command);
    fflush(stdout);
    return status;
}
