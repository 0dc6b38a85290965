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
    PAGE_OUT = 21,      // MADV_PAGEOUT, since Linux 5.4
    MOST_RANGES = 1024, // in one call (UIO_MAXIOV). Each has a page in memory, so that they are a slice
    ENTRIES = 1024,     // of pagemap, 8 KiB
};

static const uint64_t is_present = UINT64_C(1) << 63; // proc_pid_pagemap(5)
/// In bytes of addresses, for one slice: 32 MiB of pagemap, about 20 ms.
static const uint64_t most_walked = UINT64_C(16) << 30;

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

/// The ranges of a process whose pages are pushed out at once.
struct slice {
    int pagemap;
    uint64_t page_size;
    uint64_t left;   // pages in memory that may be added
    uint64_t walked; // bytes of addresses
    size_t count;
    struct iovec ranges[MOST_RANGES];
};

/// Adds what is in memory of a mapping, from `start` to `end`. Returns where it ended: before `end` if there is no more space.
static uint64_t add_mapping(struct slice *slice, uint64_t start, uint64_t end) {
    uint64_t entries[ENTRIES], page = start / slice->page_size, last = end / slice->page_size;
    uint64_t first_found = 0, end_found = 0;
    while (page < last && slice->left > 0 && slice->walked < most_walked) {
        size_t count = last - page < ENTRIES ? last - page : ENTRIES;
        ssize_t size = pread(slice->pagemap, entries, count * sizeof *entries, (off_t)(page * sizeof *entries));
        // The process has ended.
        if (size < (ssize_t)sizeof *entries)
            break;
        count = (size_t)size / sizeof *entries;
        uint64_t next = page + count;
        for (size_t i = 0; i < count && slice->left > 0; i++) {
            if (!(entries[i] & is_present))
                continue;
            end_found = page + i + 1;
            if (first_found == 0)
                first_found = page + i;
            if (--slice->left == 0)
                next = end_found;
        }
        slice->walked += count * slice->page_size;
        page = next;
    }
    // What lies between is not in memory, and the kernel skips it.
    if (end_found > 0)
        slice->ranges[slice->count++] = (struct iovec){
            (void *)(uintptr_t)(first_found * slice->page_size), (end_found - first_found) * slice->page_size};
    return page * slice->page_size;
}

/// 0 or -errno.
static int push_out(int pidfd, const struct iovec *ranges, size_t count) {
    while (count > 0) {
        ssize_t size = syscall(SYS_process_madvise, pidfd, ranges, count, PAGE_OUT, 0);
        if (size < 0 && errno != EINVAL && errno != ENOMEM)
            return -errno;
        uint64_t done = size < 0 ? 0 : (uint64_t)size;
        for (; count > 0 && done >= ranges->iov_len; ranges++, count--)
            done -= ranges->iov_len;
        // The kernel ends at a range that cannot be pushed out, such as locked memory (EINVAL).
        if (count > 0)
            ranges++, count--;
    }
    return 0;
}

int reclaim_process(int pidfd, int pid, uint64_t bytes, uint64_t *next) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/pagemap", pid);
    struct slice slice = {.pagemap = open(path, O_RDONLY | O_CLOEXEC), .page_size = (uint64_t)sysconf(_SC_PAGESIZE)};
    if (slice.pagemap < 0)
        return -errno;
    slice.left = bytes / slice.page_size;
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "re");
    int error = maps ? 0 : -errno;
    uint64_t first = *next, start, end;
    *next = 0;
    while (maps && next_private_range(maps, &start, &end)) {
        if (end <= first)
            continue;
        start = start < first ? first : start;
        // So much was looked at for nothing: the rest is not worth it.
        if (slice.walked >= most_walked)
            break;
        if (slice.left > 0 && slice.count < MOST_RANGES)
            start = add_mapping(&slice, start, end);
        if (start < end) {
            *next = slice.walked < most_walked ? start : 0;
            break;
        }
    }
    if (maps)
        fclose(maps);
    close(slice.pagemap);
    // The pid is the process's as long as the pidfd finds it, so these were its ranges.
    if (error == 0 && syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) < 0)
        error = -errno;
    return error ? error : push_out(pidfd, slice.ranges, slice.count);
}
