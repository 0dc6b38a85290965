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
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
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
    if (!strcmp(name, "epoll_pwait2")) return CALL6(SYS_epoll_pwait2, epoll, &event, 1, &time, 0, 8);
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

/// Ends what the call waits for, after the wait has begun.
static struct {
    const char *name;
    int descriptor;
    char path[64];
} other;

static void *act_later(void *unused) {
    (void)unused;
    nanosleep(&wait_time, NULL);
    struct sembuf up = {.sem_op = 1};
    struct { long type; char text; } message = {1, 'x'};
    uint64_t one = 1;
    if (!strcmp(other.name, "open of a FIFO")) open(other.path, O_WRONLY);
    if (!strcmp(other.name, "flock")) flock(other.descriptor, LOCK_UN);
    if (!strcmp(other.name, "fcntl for a lock")) fcntl(other.descriptor, F_OFD_SETLK, &(struct flock){.l_type = F_UNLCK});
    if (!strcmp(other.name, "semop")) semop(other.descriptor, &up, 1);
    if (!strcmp(other.name, "msgrcv") && msgsnd(other.descriptor, &message, 1, 0)) abort();
    if (!strcmp(other.name, "msgsnd") && msgrcv(other.descriptor, &message, 1, 0, MSG_NOERROR) < 0) abort();
    if (!strcmp(other.name, "read of an eventfd") && write(other.descriptor, &one, sizeof one) < 0) abort();
    if (!strcmp(other.name, "read of a terminal") && write(other.descriptor, "x\n", 2) < 0) abort();
    if (!strcmp(other.name, "mq_timedreceive"))
        syscall(SYS_mq_timedsend, other.descriptor, "x", 1, 0, NULL);
    if (!strcmp(other.name, "accept") || !strcmp(other.name, "connect")) {
        struct sockaddr_un address;
        socklen_t length = sizeof address;
        getsockname(other.descriptor, (struct sockaddr *)&address, &length);
        if (!strcmp(other.name, "connect")) accept(other.descriptor, NULL, NULL);
        else if (connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, length)) abort();
    }
    return NULL;
}

/// A file that has no name any more, opened a second time.
static int open_again(int file) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return open(path, O_RDWR);
}

static long wait_for_socket(const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t length = sizeof address;
    other.descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
    // The kernel chooses the name.
    bind(other.descriptor, (struct sockaddr *)&address, sizeof address.sun_family);
    listen(other.descriptor, 0);
    getsockname(other.descriptor, (struct sockaddr *)&address, &length);
    if (!strcmp(name, "accept")) {
        start(act_later);
        return CALL4(SYS_accept, other.descriptor, 0, 0, 0);
    }
    // The backlog has one connection.
    if (connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, length)) return -2;
    start(act_later);
    return CALL4(SYS_connect, socket(AF_UNIX, SOCK_STREAM, 0), &address, length, 0);
}

static long wait_for_system_v(const char *name) {
    struct sembuf down = {.sem_op = -1};
    static struct { long type; char text[1024]; } message = {1, ""};
    bool is_semaphore = !strcmp(name, "semop");
    other.descriptor = is_semaphore ? semget(IPC_PRIVATE, 1, 0600) : msgget(IPC_PRIVATE, 0600);
    while (!strcmp(name, "msgsnd") && msgsnd(other.descriptor, &message, sizeof message.text, IPC_NOWAIT) == 0) {}
    start(act_later);
    long result = is_semaphore ? CALL4(SYS_semop, other.descriptor, &down, 1, 0)
        : !strcmp(name, "msgrcv") ? CALL6(SYS_msgrcv, other.descriptor, &message, sizeof message.text, 0, 0, 0)
                                  : CALL4(SYS_msgsnd, other.descriptor, &message, sizeof message.text, 0);
    int error = errno;
    if (is_semaphore) semctl(other.descriptor, 0, IPC_RMID);
    else msgctl(other.descriptor, IPC_RMID, NULL);
    errno = error;
    return result;
}

static long wait_for_other(const char *name) {
    other.name = name;
    char bytes[64];
    if (!strcmp(name, "accept") || !strcmp(name, "connect")) return wait_for_socket(name);
    if (!strcmp(name, "semop") || !strncmp(name, "msg", 3)) return wait_for_system_v(name);
    if (!strcmp(name, "open of a FIFO")) {
        snprintf(other.path, sizeof other.path, "/tmp/greenroom-frozen-%d", (int)getpid());
        mkfifo(other.path, 0600);
        start(act_later);
        long result = CALL4(SYS_openat, AT_FDCWD, other.path, O_RDONLY, 0);
        int error = errno;
        unlink(other.path);
        errno = error;
        return result;
    }
    if (!strcmp(name, "flock") || !strcmp(name, "fcntl for a lock")) {
        other.descriptor = memfd_create("lock", 0);
        struct flock lock = {.l_type = F_WRLCK};
        int second = open_again(other.descriptor);
        bool is_flock = !strcmp(name, "flock");
        if (is_flock ? flock(other.descriptor, LOCK_EX) : fcntl(other.descriptor, F_OFD_SETLK, &lock)) return -2;
        start(act_later);
        return is_flock ? CALL4(SYS_flock, second, LOCK_EX, 0, 0) : CALL4(SYS_fcntl, second, F_OFD_SETLKW, &lock, 0);
    }
    if (!strcmp(name, "mq_timedreceive")) {
        struct { long flags, most, size, count, unused[4]; } attributes = {.most = 1, .size = 8};
        snprintf(other.path, sizeof other.path, "greenroom-frozen-%d", (int)getpid());
        other.descriptor = (int)syscall(SYS_mq_open, other.path, O_RDWR | O_CREAT, 0600, &attributes);
        syscall(SYS_mq_unlink, other.path);
        start(act_later);
        return CALL6(SYS_mq_timedreceive, other.descriptor, bytes, 8, 0, 0, 0);
    }
    if (!strcmp(name, "read of an eventfd")) other.descriptor = eventfd(0, 0);
    else if (!strcmp(name, "read of a terminal")) other.descriptor = posix_openpt(O_RDWR | O_NOCTTY);
    else return -2;
    int read_end = other.descriptor;
    if (!strcmp(name, "read of a terminal")) {
        if (grantpt(read_end) || unlockpt(read_end)) return -2;
        read_end = open(ptsname(read_end), O_RDWR | O_NOCTTY);
    }
    start(act_later);
    return CALL4(SYS_read, read_end, bytes, sizeof bytes, 0);
}

static long write_to(const char *name) {
    struct iovec part = {block, WRITTEN};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    start(read_later);
    if (!strncmp(name, "writev", 6)) return CALL4(SYS_writev, pair[1], &part, 1, 0);
    if (!strncmp(name, "sendto", 6)) return CALL6(SYS_sendto, pair[1], block, WRITTEN, 0, 0, 0);
    if (!strncmp(name, "sendmsg", 7)) return CALL4(SYS_sendmsg, pair[1], &message, 0, 0);
    if (!strncmp(name, "sendfile", 8)) {
        int file = memfd_create("file", 0);
        off_t begin = 0;
        if (ftruncate(file, WRITTEN)) return -2;
        return CALL4(SYS_sendfile, pair[1], file, &begin, WRITTEN);
    }
    return CALL4(SYS_write, pair[1], block, WRITTEN, 0);
}

static bool is_written(const char *name) { return !strncmp(name, "write", 5) || !strncmp(name, "send", 4); }

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
    if (!strcmp(name, "waitid")) {
        pid_t child = fork();
        if (child == 0) {
            nanosleep(&wait_time, NULL);
            _exit(0);
        }
        siginfo_t info;
        return CALL6(SYS_waitid, P_PID, child, &info, WEXITED, 0, 0);
    }
    bool is_pipe = strstr(name, "pipe");
    if (is_pipe ? pipe2(pair, 0) : socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return -2;
    if (is_written(name)) return write_to(name);
    start(send_later);
    struct iovec part = {byte, 1};
    struct mmsghdr message = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
    if (!strncmp(name, "readv", 5)) return CALL4(SYS_readv, pair[0], &part, 1, 0);
    if (!strcmp(name, "recvmsg")) return CALL4(SYS_recvmsg, pair[0], &message.msg_hdr, 0, 0);
    if (!strcmp(name, "recvmmsg")) return CALL6(SYS_recvmmsg, pair[0], &message, 1, 0, 0, 0);
    if (!strcmp(name, "splice from a pipe"))
        return CALL6(SYS_splice, pair[0], 0, memfd_create("file", 0), 0, 1, 0);
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
    if (result == -2) result = wait_for_other(name);
    if (result == -2) result = wait_for_event(name);
    if (result == -2) return 2;
    if (result >= 0)
        puts(is_written(name) && result < WRITTEN ? "short" : "complete");
    else
        puts(errno == EINTR ? "EINTR" : errno == ETIMEDOUT ? "ETIMEDOUT" : strerror(errno));
    return 0;
}
