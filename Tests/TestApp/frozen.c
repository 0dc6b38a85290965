#include "frozen.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// Long enough to be frozen in it, and short enough to wait for its end.
static const struct timespec wait_time = {.tv_sec = 1};
enum { WRITTEN = 3000000 };

static int pair[2];
static char block[WRITTEN];

static void ignore(int number) { (void)number; }

/// The other end: sends a byte after the wait has begun.
static void *send_later(void *unused) {
    (void)unused;
    nanosleep(&wait_time, NULL);
    if (write(pair[1], "x", 1) < 0) abort();
    return NULL;
}

/// The other end: reads all, after the writer waits for space.
static void *read_later(void *unused) {
    (void)unused;
    static char buffer[65536];
    nanosleep(&wait_time, NULL);
    while (read(pair[0], buffer, sizeof buffer) > 0) {}
    return NULL;
}

static void start(void *(*body)(void *)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, NULL) != 0) abort();
}

static long call(long number, long a, long b, long c, long d, long e, long f) {
    printf("%ld\n", number);
    fflush(stdout);
    errno = 0;
    return syscall(number, a, b, c, d, e, f);
}
#define CALL6(number, a, b, c, d, e, f) call(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define CALL4(number, a, b, c, d) CALL6(number, a, b, c, d, 0, 0)

static long wait_for_time(const char *name, int epoll, int readable) {
    struct timespec time = wait_time, end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += time.tv_sec;
    int word = 0;
    struct epoll_event event;
    if (!strcmp(name, "nanosleep")) return CALL4(SYS_nanosleep, &time, &time, 0, 0);
    if (!strcmp(name, "clock_nanosleep")) return CALL4(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, &time);
    if (!strcmp(name, "clock_nanosleep until"))
        return CALL4(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &end, 0);
    struct pollfd entry = {.fd = readable, .events = POLLIN};
    if (!strcmp(name, "ppoll")) return CALL6(SYS_ppoll, &entry, 1, &time, 0, 8, 0);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(readable, &set);
    if (!strcmp(name, "pselect6")) return CALL6(SYS_pselect6, readable + 1, &set, 0, 0, &time, 0);
    if (!strcmp(name, "epoll_pwait")) return CALL6(SYS_epoll_pwait, epoll, &event, 1, 1000, 0, 8);
    if (!strcmp(name, "futex")) return CALL6(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &time, 0, 0);
    if (!strcmp(name, "futex until"))
        return CALL6(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &end, 0, FUTEX_BITSET_MATCH_ANY);
    if (!strcmp(name, "rt_sigtimedwait")) {
        sigset_t signals;
        sigemptyset(&signals);
        sigaddset(&signals, SIGUSR1);
        return CALL4(SYS_rt_sigtimedwait, &signals, 0, &time, 8);
    }
    if (!strcmp(name, "semtimedop")) {
        int id = semget(IPC_PRIVATE, 1, 0600);
        struct sembuf operation = {.sem_op = -1};
        long result = CALL4(SYS_semtimedop, id, &operation, 1, &time);
        int error = errno;
        semctl(id, 0, IPC_RMID);
        errno = error;
        return result;
    }
#ifdef SYS_poll
    if (!strcmp(name, "poll")) return CALL4(SYS_poll, &entry, 1, 1000, 0);
    struct timeval value = {.tv_sec = time.tv_sec};
    if (!strcmp(name, "select")) return CALL6(SYS_select, readable + 1, &set, 0, 0, &value, 0);
    if (!strcmp(name, "epoll_wait")) return CALL4(SYS_epoll_wait, epoll, &event, 1, 1000);
#endif
    return -2;
}

static long wait_for_event(const char *name) {
    struct itimerspec timer = {.it_value = wait_time};
    char byte[8];
    if (!strcmp(name, "read of a timerfd")) {
        int descriptor = timerfd_create(CLOCK_MONOTONIC, 0);
        timerfd_settime(descriptor, 0, &timer, NULL);
        return CALL4(SYS_read, descriptor, byte, 8, 0);
    }
    if (!strcmp(name, "rt_sigsuspend with setitimer")) {
        sigset_t none;
        sigemptyset(&none);
        signal(SIGALRM, ignore);
        struct itimerval alarm = {.it_value = {.tv_sec = wait_time.tv_sec}};
        setitimer(ITIMER_REAL, &alarm, NULL);
        return CALL4(SYS_rt_sigsuspend, &none, 8, 0, 0);
    }
    if (!strcmp(name, "wait4")) {
        pid_t child = fork();
        if (child == 0) {
            nanosleep(&wait_time, NULL);
            _exit(0);
        }
        return CALL4(SYS_wait4, child, 0, 0, 0) == child ? 0 : -1;
    }
    bool is_pipe = strstr(name, "pipe");
    if (is_pipe ? pipe2(pair, 0) : socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return -2;
    if (!strncmp(name, "write", 5)) {
        start(read_later);
        return CALL4(SYS_write, pair[1], block, WRITTEN, 0);
    }
    start(send_later);
    if (!strncmp(name, "read", 4)) return CALL4(SYS_read, pair[0], byte, 1, 0);
    struct timeval time = {.tv_sec = 20};
    if (!strcmp(name, "recvfrom with SO_RCVTIMEO")) setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    if (!strncmp(name, "recvfrom", 8)) return CALL6(SYS_recvfrom, pair[0], byte, 1, 0, 0, 0);
    return -2;
}

int wait_frozen(const char *name) {
    int descriptors[2], epoll = epoll_create1(EPOLL_CLOEXEC);
    if (pipe2(descriptors, O_CLOEXEC) != 0) return 1;
    long result = wait_for_time(name, epoll, descriptors[0]);
    if (result == -2) result = wait_for_event(name);
    if (result == -2) return 2;
    if (result >= 0)
        puts(!strncmp(name, "write", 5) && result < WRITTEN ? "short" : "complete");
    else
        puts(errno == EINTR ? "EINTR" : errno == ETIMEDOUT ? "ETIMEDOUT" : strerror(errno));
    return 0;
}
