// Reads files for a helper thread: for an attribute in /sys the kernel may ask the device, or wait for its lock, and for any other path a
// FUSE server that does not answer.
#include "readfiles.h"
#include "clinux_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LONGEST_LIST = 1 << 20,
    LONGEST_FILE = 4096, // an attribute has at most a page
};

static int write_all(int output, const void *bytes, size_t size) {
    for (const char *next = bytes; size > 0;) {
        ssize_t count = write(output, next, size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count < 0 ? -errno : -EIO;
        next += count;
        size -= (size_t)count;
    }
    return 0;
}

static int32_t read_file(const char *path, char *content) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return -1;
    struct stat about;
    ssize_t length = -1;
    if (fstat(file, &about) == 0 && S_ISREG(about.st_mode))
        length = read(file, content, LONGEST_FILE);
    close(file);
    return (int32_t)length;
}

int read_files(int list, int output, uint64_t *count) {
    struct stat about;
    if (fstat(list, &about) < 0)
        return -errno;
    if (about.st_size > LONGEST_LIST)
        return -E2BIG;
    size_t capacity = (size_t)about.st_size;
    char *paths = malloc(capacity + 1 + LONGEST_FILE);
    if (!paths)
        return -ENOMEM;
    char *content = paths + capacity + 1;
    ssize_t size = pread(list, paths, capacity, 0);
    int result = size < 0 ? -errno : 0;
    paths[size < 0 ? 0 : size] = 0;
    for (char *path = paths; result == 0 && path < paths + size; path += strlen(path) + 1) {
        int32_t length = read_file(path, content);
        result = write_all(output, &length, sizeof length);
        if (result == 0 && length > 0)
            result = write_all(output, content, (size_t)length);
        ++*count;
    }
    free(paths);
    return result;
}

/// Watches the nearest folder above `path` that exists. The watch, or -1.
static int watch_folder(int inotify, const char *path) {
    char folder[PATH_MAX];
    memcpy(folder, path, strlen(path) + 1);
    uint32_t changes = IN_DELETE_SELF | IN_MOVE_SELF | IN_DELETE | IN_MOVED_FROM | IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE;
    for (char *end; (end = strrchr(folder, '/'));) {
        *end = 0;
        int watch = inotify_add_watch(inotify, *folder ? folder : "/", changes | IN_ONLYDIR);
        if (watch >= 0)
            return watch;
    }
    return -1;
}

int watch_file(int inotify, int before, int file) {
    char path[PATH_MAX];
    ssize_t length = pread(file, path, sizeof path - 1, 0);
    if (length < 0)
        return -errno;
    path[length] = 0;
    // What is created between the two calls is reported.
    struct clinux_file_state state = {.watch = watch_folder(inotify, path)};
    if (before >= 0 && before != state.watch)
        inotify_rm_watch(inotify, before);
    struct stat about;
    if (stat(path, &about) == 0 && S_ISREG(about.st_mode)) {
        state.exists = 1;
        state.seconds = about.st_mtim.tv_sec;
        state.nanoseconds = about.st_mtim.tv_nsec;
        state.size = about.st_size;
    }
    return pwrite(file, &state, sizeof state, 0) == sizeof state ? 0 : -EIO;
}
