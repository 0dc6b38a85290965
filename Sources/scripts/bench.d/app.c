// What the benchmarks launch, freeze and kill: a small C program that notes on a board in shared memory when it gets to run.
//
//   app stamp BOARD SLOT          notes the time, and ends
//   app wait BOARD SLOT           notes the time, and sleeps for ever
//   app stubborn BOARD SLOT       the same, deaf to SIGTERM
//   app spin BOARD SLOT           never rests; notes when it sees that it was asked
//   app asleep BOARD SLOT PIPE    sleeps until a byte comes, notes when it has read it
//   app timers BOARD SLOT COUNT FIRST STEP    has COUNT children, and a timerfd that is due FIRST and then each STEP ns
//                                             later: kills a child each time, and notes in slot after slot how long
//                                             after the time it was dead and reaped
//
// BOARD is a path, SLOT a number. greenroom-bench's Board.swift knows the same layout.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct slot {
    _Atomic uint64_t asked;    // a number that the benchmark writes
    _Atomic uint64_t answered; // the same number, when the app has seen it
    _Atomic uint64_t time;     // of CLOCK_MONOTONIC, in ns, when it saw it
    _Atomic uint64_t pid;
    uint64_t unused[4]; // a cache line each
};

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static _Noreturn void give_up(const char *what) {
    fprintf(stderr, "bench app: %s: %s\n", what, strerror(errno));
    exit(1);
}

static struct slot *map_board(const char *path) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct stat about;
    if (fd < 0 || fstat(fd, &about) != 0) give_up(path);
    void *board = mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (board == MAP_FAILED) give_up("mmap");
    return board;
}

static void answer(struct slot *slot, uint64_t time, uint64_t number) {
    atomic_store_explicit(&slot->time, time, memory_order_relaxed);
    atomic_store_explicit(&slot->answered, number, memory_order_release);
}

static void spin(struct slot *slot) {
    uint64_t answered = atomic_load(&slot->asked);
    for (;;) {
        uint64_t asked = atomic_load_explicit(&slot->asked, memory_order_relaxed);
        if (asked == answered) continue;
        answer(slot, now(), asked);
        answered = asked;
    }
}

static void sleep_until_asked(struct slot *slot, const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) give_up(path);
    unsigned char byte;
    while (read(fd, &byte, 1) == 1) answer(slot, now(), atomic_load(&slot->asked));
}

static pid_t make_victim(void) {
    pid_t pid = fork();
    if (pid < 0) give_up("fork");
    if (pid > 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
}

static void run_timers(struct slot *slot, uint64_t count, uint64_t first, uint64_t step) {
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    pid_t *victims = calloc(count, sizeof *victims);
    if (fd < 0 || !victims) give_up("timerfd_create");
    for (uint64_t i = 0; i < count; i++) victims[i] = make_victim();
    for (uint64_t i = 0; i < count; i++) {
        uint64_t due = first + i * step, expirations;
        struct itimerspec setting = {.it_value = {.tv_sec = (time_t)(due / 1000000000), .tv_nsec = (long)(due % 1000000000)}};
        if (timerfd_settime(fd, TFD_TIMER_ABSTIME, &setting, NULL) != 0) give_up("timerfd_settime");
        if (read(fd, &expirations, sizeof expirations) < 0) give_up("read");
        kill(victims[i], SIGKILL);
        waitpid(victims[i], NULL, 0);
        answer(slot + i, now() - due, 1);
    }
}

int main(int count, char **arguments) {
    uint64_t started = now();
    if (count < 4) return 2;
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
    if (!strcmp(what, "asleep") && count == 5) sleep_until_asked(slot, arguments[4]);
    if (!strcmp(what, "wait") || !strcmp(what, "stubborn")) for (;;) pause();
    return 2;
}
