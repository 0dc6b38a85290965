// What the programs of the benchmark share: the memory in which they record when they run. Board.swift of greenroom-bench
// declares the same layout.
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct slot {
    _Atomic uint64_t requested; // a number that the benchmark writes
    _Atomic uint64_t answered;  // the same number, written by the app
    _Atomic uint64_t time;      // of CLOCK_MONOTONIC, in ns, when the app saw the request
    _Atomic uint64_t pid;
    _Atomic uint64_t port;      // of 127.0.0.1, written by a server once it listens
    uint64_t unused[3]; // Each slot has a cache line of its own.
};

static inline _Noreturn void fail(const char *what) {
    fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
    exit(1);
}

static inline struct slot *map_board(const char *path) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct stat about;
    if (fd < 0 || fstat(fd, &about) != 0) fail(path);
    void *board = mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (board == MAP_FAILED) fail("mmap");
    return board;
}
