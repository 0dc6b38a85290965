// Finds what an app has in memory after it was pushed out, and asks for it again, on the worker's thread.
#include "pages.h"
#include "clinux_pages.h"
#include "reclaim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
    WILL_NEED = 3, // MADV_WILLNEED; of another process since Linux 5.15
    MOST_PROCESSES = 64,
    ENTRIES = 1024,   // of pagemap, 8 KiB
    MOST_ASKED = 256, // pages in one call
    LONGEST_PAIR = 20, // two numbers of 64 bits
};

static const uint64_t is_present = UINT64_C(1) << 63; // proc_pid_pagemap(5)
/// An app that is pushed out for the first time has more (smallestReclaim of the core), and what it has says nothing about its last wake.
static const uint64_t most_bytes = UINT64_C(16) << 20;
/// In bytes of addresses. The kernel makes an entry of pagemap for each page of them, mapped or not: 32 MiB.
static const uint64_t most_walked = UINT64_C(16) << 30;
/// A mapping counts for so much at least: of a process, which can have 65,530, all fit.
static const uint64_t least_walked = UINT64_C(256) << 10;

// MARK: Numbers

static void put(struct clinux_pages *pages, uint64_t number) {
    for (; number > 127; number >>= 7)
        pages->bytes[pages->length++] = (uint8_t)(number | 128);
    pages->bytes[pages->length++] = (uint8_t)number;
}

static void put_pair(struct clinux_pages *pages, uint64_t first, uint64_t second) {
    if (pages->length + LONGEST_PAIR > sizeof pages->bytes)
        return;
    put(pages, first);
    put(pages, second);
}

static uint64_t get(const uint8_t **next, const uint8_t *end) {
    uint64_t number = 0;
    for (unsigned shift = 0; *next < end && shift < 64; shift += 7) {
        uint8_t byte = *(*next)++;
        number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            break;
    }
    return number;
}

bool clinux_pages_next(const uint8_t **next, const uint8_t *end, uint64_t *first, uint64_t *second) {
    if (*next >= end)
        return false;
    *first = get(next, end);
    *second = get(next, end);
    return true;
}

void clinux_pages_end(struct clinux_pages *pages) {
    if (pages->end > pages->start)
        put_pair(pages, pages->start - pages->written, pages->end - pages->start);
    pages->written = pages->start = pages->end;
}

void clinux_pages_begin(struct clinux_pages *pages, int pid) {
    clinux_pages_end(pages);
    put_pair(pages, (uint64_t)pid, 0);
    pages->written = pages->start = pages->end = 0;
}

int clinux_pages_add(struct clinux_pages *pages, uint64_t first, const uint64_t *entries, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint64_t page = first + i;
        if (!(entries[i] & is_present))
            continue;
        if (pages->end == pages->start || page - pages->end >= CLINUX_PAGES_GAP) {
            clinux_pages_end(pages);
            pages->start = pages->end = page;
        }
        uint64_t added = page + 1 - pages->end;
        if (added > pages->left)
            return -E2BIG;
        pages->left -= added;
        pages->end = page + 1;
    }
    return 0;
}

// MARK: Processes

static int add_range(struct clinux_pages *pages, int pagemap, uint64_t first, uint64_t end) {
    uint64_t entries[ENTRIES];
    while (first < end) {
        size_t count = end - first < ENTRIES ? end - first : ENTRIES;
        ssize_t size = pread(pagemap, entries, count * sizeof *entries, (off_t)(first * sizeof *entries));
        // The process has ended.
        if (size < (ssize_t)sizeof *entries)
            return 0;
        int error = clinux_pages_add(pages, first, entries, (size_t)size / sizeof *entries);
        if (error)
            return error;
        first += (size_t)size / sizeof *entries;
    }
    return 0;
}

static int add_process(struct clinux_pages *pages, int pid, uint64_t page_size, uint64_t *walked) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/pagemap", pid);
    int pagemap = open(path, O_RDONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "re");
    int error = 0;
    // It may have ended, or this daemon may not examine it.
    if (pagemap >= 0 && maps) {
        clinux_pages_begin(pages, pid);
        uint64_t start, end;
        while (error == 0 && next_private_range(maps, &start, &end)) {
            *walked += end - start < least_walked ? least_walked : end - start;
            error = *walked > most_walked ? -E2BIG : add_range(pages, pagemap, start / page_size, end / page_size);
        }
    }
    if (maps)
        fclose(maps);
    if (pagemap >= 0)
        close(pagemap);
    return error;
}

int pages_record(int file) {
    int pids[MOST_PROCESSES];
    ssize_t size = pread(file, pids, sizeof pids, 0);
    if (size < 0)
        return -errno;
    uint64_t page_size = (uint64_t)sysconf(_SC_PAGESIZE), walked = 0;
    struct clinux_pages pages = {.left = most_bytes / page_size};
    for (size_t i = 0; i < (size_t)size / sizeof *pids; i++) {
        int error = add_process(&pages, pids[i], page_size, &walked);
        if (error)
            return error;
    }
    clinux_pages_end(&pages);
    if (ftruncate(file, 0) < 0)
        return -errno;
    return pwrite(file, pages.bytes, pages.length, 0) == (ssize_t)pages.length ? 0 : -EIO;
}

static uint64_t microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

int pages_bring_back(int file, uint64_t until) {
    uint8_t bytes[CLINUX_PAGES_SIZE];
    ssize_t size = pread(file, bytes, sizeof bytes, 0);
    if (size < 0)
        return -errno;
    const uint8_t *next = bytes, *end = bytes + size;
    uint64_t page_size = (uint64_t)sysconf(_SC_PAGESIZE), page = 0, first, count;
    int pidfd = -1, error = 0;
    while (error == 0 && clinux_pages_next(&next, end, &first, &count)) {
        if (count == 0) {
            if (pidfd >= 0)
                close(pidfd);
            // If the ID is another process's by now, that reads a little of its memory from swap: it changes nothing.
            pidfd = (int)syscall(SYS_pidfd_open, (pid_t)first, 0);
            page = 0;
            continue;
        }
        page += first;
        for (uint64_t asked; pidfd >= 0 && count > 0 && error == 0 && microseconds() < until; page += asked, count -= asked) {
            asked = count < MOST_ASKED ? count : MOST_ASKED;
            struct iovec range = {(void *)(uintptr_t)(page * page_size), asked * page_size};
            // One call for each: the kernel ignores those after one that is not mapped any more (ENOMEM).
            if (syscall(SYS_process_madvise, pidfd, &range, 1, WILL_NEED, 0) < 0 && errno != ENOMEM && errno != ESRCH)
                error = -errno;
        }
        page += count;
    }
    if (pidfd >= 0)
        close(pidfd);
    return error;
}
