// Pushes memory of frozen apps out to swap, on the worker's thread.
#include "reclaim.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    PAGE_OUT = 21,    // MADV_PAGEOUT, since Linux 5.4
    MOST_RANGES = 64, // in one call; UIO_MAXIOV is 1024
};

/// 0 or -errno.
static int write_amount(int file, uint64_t bytes, const char *swappiness) {
    char text[48];
    int length = snprintf(text, sizeof text, "%" PRIu64 "%s", bytes, swappiness);
    ssize_t written;
    do
        written = write(file, text, (size_t)length);
    while (written < 0 && errno == EINTR);
    return written < 0 ? -errno : 0;
}

int reclaim_group(int folder, uint64_t bytes) {
    int file = openat(folder, "memory.reclaim", O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return -errno;
    // Pages of files, such as those of libc, are often other programs' too. Kernels before 6.9 know no swappiness here.
    int result = write_amount(file, bytes, " swappiness=200");
    if (result == -EINVAL)
        result = write_amount(file, bytes, "");
    close(file);
    return result == -EAGAIN ? 0 : result;
}

/// Reads a line of /proc/PID/maps (proc_pid_maps(5)). Returns whether it is private memory that can be written and has no file.
static bool read_range(const char *line, uint64_t *start, uint64_t *end) {
    char mode[5];
    uint64_t inode;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %*s %" SCNu64, start, end, mode, &inode) != 4)
        return false;
    return mode[1] == 'w' && mode[3] == 'p' && inode == 0 && *end > *start;
}

bool next_private_range(FILE *maps, uint64_t *start, uint64_t *end) {
    char line[512];
    while (fgets(line, sizeof line, maps)) {
        bool is_found = read_range(line, start, end);
        // The rest of a line that is longer than the buffer.
        while (!strchr(line, '\n') && fgets(line, sizeof line, maps))
            ;
        if (is_found)
            return true;
    }
    return false;
}

int reclaim_process(int pidfd, int pid, uint64_t bytes, uint64_t *next) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "re");
    if (!maps)
        return -errno;
    struct iovec ranges[MOST_RANGES];
    size_t count = 0;
    uint64_t first = *next, left = bytes;
    *next = 0;
    uint64_t start, end;
    while (next_private_range(maps, &start, &end)) {
        if (end <= first)
            continue;
        start = start < first ? first : start;
        if (left == 0 || count == MOST_RANGES) {
            *next = start;
            break;
        }
        uint64_t length = end - start < left ? end - start : left;
        ranges[count++] = (struct iovec){(void *)(uintptr_t)start, length};
        left -= length;
        if (start + length < end) {
            *next = start + length;
            break;
        }
    }
    fclose(maps);
    // The pid is the process's as long as the pidfd finds it, so these were its ranges.
    if (syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) < 0)
        return -errno;
    if (count == 0)
        return 0;
    return syscall(SYS_process_madvise, pidfd, ranges, count, PAGE_OUT, 0) < 0 ? -errno : 0;
}
