// Reads files for a helper thread: for an attribute in /sys the kernel may ask the device, or wait for its lock.
#include "readfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
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
