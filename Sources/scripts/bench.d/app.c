// The app of the benchmarks. It records in shared memory when it runs.
//
//   app stamp BOARD SLOT          records the time and exits
//   app wait BOARD SLOT           records the time and sleeps
//   app stubborn BOARD SLOT       does the same and ignores SIGTERM
//   app spin BOARD SLOT           runs a busy loop and records the time of each request
//   app asleep BOARD SLOT PIPE    reads a pipe and records the time after each byte
//   app timers BOARD SLOT COUNT FIRST STEP    forks COUNT children and sets a timerfd to FIRST, FIRST + STEP, … (in ns).
//                                             At each expiration it kills and reaps a child and records in the next slot
//                                             how many ns this took after the expiration
//   app memory KIND FOLDER        uses memory, creates FOLDER/loaded and sleeps. KIND:
//                                 own       300 MiB
//                                 forks     200 MiB, shared with 4 children, each of which has changed 20 MiB
//                                 memfd     a memfd of 300 MiB, mapped by 4 processes
//                                 unmapped  a memfd of 300 MiB that no process maps
//                                 linked    a file of 300 MiB in /dev/shm, which survives the program
//                                 cache     reads a file of 600 MiB and maps it
//
// BOARD is the path of the shared memory, SLOT a number (board.h).
#include <signal.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "board.h"

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void answer(struct slot *slot, uint64_t time, uint64_t number) {
    atomic_store_explicit(&slot->time, time, memory_order_relaxed);
    atomic_store_explicit(&slot->answered, number, memory_order_release);
}

static void spin(struct slot *slot) {
    uint64_t answered = atomic_load(&slot->requested);
    for (;;) {
        uint64_t requested = atomic_load_explicit(&slot->requested, memory_order_relaxed);
        if (requested == answered) continue;
        answer(slot, now(), requested);
        answered = requested;
    }
}

static void sleep_until_requested(struct slot *slot, const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) fail(path);
    unsigned char byte;
    while (read(fd, &byte, 1) == 1) answer(slot, now(), atomic_load(&slot->requested));
}

static pid_t fork_child(void) {
    pid_t pid = fork();
    if (pid < 0) fail("fork");
    if (pid > 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
}

static void run_timers(struct slot *slot, uint64_t count, uint64_t first, uint64_t step) {
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    pid_t *children = calloc(count, sizeof *children);
    if (fd < 0 || !children) fail("timerfd_create");
    for (uint64_t i = 0; i < count; i++) children[i] = fork_child();
    for (uint64_t i = 0; i < count; i++) {
        uint64_t due = first + i * step, expirations;
        struct itimerspec setting = {.it_value = {.tv_sec = (time_t)(due / 1000000000), .tv_nsec = (long)(due % 1000000000)}};
        if (timerfd_settime(fd, TFD_TIMER_ABSTIME, &setting, NULL) != 0) fail("timerfd_settime");
        if (read(fd, &expirations, sizeof expirations) < 0) fail("read");
        kill(children[i], SIGKILL);
        waitpid(children[i], NULL, 0);
        answer(slot + i, now() - due, 1);
    }
}

static const size_t mebibyte = 1 << 20;

// Writes other values to each page, so that no two are the same (KSM).
static void touch(char *start, size_t size, size_t seed) {
    for (size_t at = 0; at < size; at += 4096) *(size_t *)(start + at) = seed + at;
}

static char *map(int fd, size_t size) {
    char *start = mmap(NULL, size, PROT_READ | PROT_WRITE, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
    if (start == MAP_FAILED) fail("mmap");
    return start;
}

static char *map_sized(int fd, size_t size) {
    if (fd < 0 || ftruncate(fd, (off_t)size) != 0) fail("ftruncate");
    char *start = map(fd, size);
    touch(start, size, 1);
    return start;
}

static void read_file(const char *folder) {
    static char buffer[1 << 20];
    char path[4096];
    snprintf(path, sizeof path, "%s/large", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) fail(path);
    for (int i = 0; i < 600; i++)
        if (write(fd, buffer, sizeof buffer) != sizeof buffer) fail(path);
    // Pages that are not written yet are no cache that the kernel can drop.
    fsync(fd);
    volatile char *start = map(fd, 600 * mebibyte);
    for (size_t at = 0; at < 600 * mebibyte; at += 4096) (void)start[at];
}

static void use_memory(const char *kind, const char *folder) {
    char path[4096];
    if (!strcmp(kind, "own")) touch(map(-1, 300 * mebibyte), 300 * mebibyte, 1);
    if (!strcmp(kind, "forks")) {
        char *start = map(-1, 200 * mebibyte);
        touch(start, 200 * mebibyte, 1);
        for (size_t child = 0; child < 4; child++)
            if (fork() == 0) {
                touch(start + child * 20 * mebibyte, 20 * mebibyte, child + 2);
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;) pause();
            }
    }
    if (!strcmp(kind, "memfd")) {
        char *start = map_sized(memfd_create("shared", MFD_CLOEXEC), 300 * mebibyte);
        for (size_t child = 0; child < 3; child++)
            if (fork() == 0) {
                touch(start, 300 * mebibyte, 1);
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;) pause();
            }
    }
    if (!strcmp(kind, "unmapped")) munmap(map_sized(memfd_create("kept", MFD_CLOEXEC), 300 * mebibyte), 300 * mebibyte);
    if (!strcmp(kind, "linked")) {
        snprintf(path, sizeof path, "%s/linked", folder);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        map_sized(fd, 300 * mebibyte);
    }
    if (!strcmp(kind, "cache")) read_file(folder);
    snprintf(path, sizeof path, "%s/loaded", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) fail(path);
    // The children of `forks` and `memfd` have touched their pages some time later; the benchmark waits for a stable size.
    for (;;) pause();
}

int main(int count, char **arguments) {
    uint64_t started = now();
    if (count < 4) return 2;
    if (!strcmp(arguments[1], "memory")) use_memory(arguments[2], arguments[3]);
    const char *what = arguments[1];
    struct slot *slot = map_board(arguments[2]) + atoi(arguments[3]);
    if (!strcmp(what, "stubborn")) signal(SIGTERM, SIG_IGN);
    atomic_store(&slot->pid, (uint64_t)getpid());
    if (!strcmp(what, "timers") && count == 7) {
        run_timers(slot, strtoull(arguments[4], NULL, 10), strtoull(arguments[5], NULL, 10), strtoull(arguments[6], NULL, 10));
        return 0;
    }
    atomic_store(&slot->time, started);
    if (!strcmp(what, "stamp")) return 0;
    if (!strcmp(what, "spin")) spin(slot);
    if (!strcmp(what, "asleep") && count == 5) sleep_until_requested(slot, arguments[4]);
    if (!strcmp(what, "wait") || !strcmp(what, "stubborn")) for (;;) pause();
    return 2;
}
