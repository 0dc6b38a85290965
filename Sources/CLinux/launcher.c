#include "launcher.h"
#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1) // linux/close_range.h, since Linux 5.9
#endif

enum {
    CHANNEL = 3,          // of the launcher, in its own table
    START_TIMEOUT = 1000, // ms; without the launcher, a child gets a copy of the whole table
    STACK_SIZE = 32 * 1024,
    GUARD_SIZE = 64 * 1024, // one page of any size (4, 16 or 64 KiB)
};

/// What the caller sends as a pointer, together with the descriptors. It exists until the answer arrives.
struct call {
    launcher_function *function;
    void *argument;
    int *numbers; // those that were sent have the value SENT
    size_t count;
};

enum { SENT = LAUNCHER_NOT_OPEN + 1 };

/// The control message of a datagram.
union control {
    char bytes[CMSG_SPACE(LAUNCHER_CAPACITY * sizeof(int))];
    struct cmsghdr aligned;
};

// The daemon calls from one thread; the tests call from several.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static enum { NOT_STARTED, STARTING, READY, FAILED } state;
static int channel = -1;
static int launcher_channel = -1; // the other end, until the launcher has a table of its own
static int start_timeout = START_TIMEOUT;

// MARK: Messages

/// Sends a word and descriptors; 0 or -errno.
CHILD long send_word(int socket, uint64_t word, const int *descriptors, size_t count) {
    union control control;
    struct iovec part = {&word, sizeof word};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *message = CMSG_FIRSTHDR(&header);
        message->cmsg_level = SOL_SOCKET;
        message->cmsg_type = SCM_RIGHTS;
        message->cmsg_len = CMSG_LEN(count * sizeof(int));
        for (size_t i = 0; i < count; i++)
            ((int *)CMSG_DATA(message))[i] = descriptors[i];
    }
    long sent;
    do
        sent = raw3(SYS_sendmsg, socket, &header, MSG_NOSIGNAL);
    while (sent == -EINTR);
    return sent < 0 ? sent : 0;
}

/// Receives a word and descriptors. 1, 0 at the end, or -errno.
CHILD long receive_word(int socket, uint64_t *word, int *descriptors, size_t *count) {
    union control control;
    struct iovec part = {word, sizeof *word};
    struct msghdr header = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    long length;
    do
        length = raw3(SYS_recvmsg, socket, &header, MSG_CMSG_CLOEXEC);
    while (length == -EINTR);
    *count = 0;
    if (length <= 0)
        return length;
    struct cmsghdr *message = CMSG_FIRSTHDR(&header);
    if (message && message->cmsg_level == SOL_SOCKET && message->cmsg_type == SCM_RIGHTS) {
        *count = (message->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < *count; i++)
            descriptors[i] = ((int *)CMSG_DATA(message))[i];
    }
    return length == sizeof *word ? 1 : -EPROTO;
}

// MARK: The launcher

/// Gives this process a table of its own, with `CHANNEL` and the standard descriptors; 0 or -errno.
CHILD long take_table(int socket) {
    // Higher numbers are neither copied nor closed, except for the rest of a block of 64.
    long result = raw3(SYS_close_range, (unsigned)socket + 1, ~0U, CLOSE_RANGE_UNSHARE);
    if (result < 0)
        return result;
    if (socket != CHANNEL) {
        result = raw3(SYS_dup3, socket, CHANNEL, O_CLOEXEC);
        if (result < 0)
            return result;
    }
    return raw3(SYS_close_range, CHANNEL + 1, ~0U, 0);
}

/// Performs a call and answers it.
CHILD void perform(struct call *call, const int *received, size_t count) {
    size_t next = 0;
    for (size_t i = 0; i < call->count; i++)
        if (call->numbers[i] == SENT)
            call->numbers[i] = next < count ? received[next++] : LAUNCHER_NOT_OPEN;
    int returned = -1;
    long result = call->function(call->argument, call->numbers, &returned);
    // The caller has them open too, so this is never the close that can linger.
    for (size_t i = 0; i < count; i++)
        raw1(SYS_close, received[i]);
    // Without its descriptor if the kernel refuses to send one (ETOOMANYREFS, unix(7)).
    if (returned < 0 || send_word(CHANNEL, (uint64_t)result, &returned, 1) < 0)
        send_word(CHANNEL, (uint64_t)result, NULL, 0);
    if (returned >= 0)
        raw1(SYS_close, returned);
}

CHILD __attribute__((noreturn)) void serve(void *argument) {
    int socket = (int)(intptr_t)argument;
    raw5(SYS_prctl, PR_SET_NAME, "launcher", 0, 0, 0);
    long error = take_table(socket);
    send_word(error < 0 ? socket : CHANNEL, (uint64_t)error, NULL, 0);
    uint64_t word;
    int received[LAUNCHER_CAPACITY];
    size_t count;
    // The end of the channel is the end of the caller, or its execve(2).
    while (error == 0 && receive_word(CHANNEL, &word, received, &count) == 1)
        perform((struct call *)(uintptr_t)word, received, count);
    for (;;)
        raw1(SYS_exit_group, 0);
}

/// Starts the launcher with a socket of the caller's table; 0 or -errno.
static long create(int socket) {
    static uint8_t *stack;
    if (!stack) {
        size_t size = GUARD_SIZE + STACK_SIZE;
        uint8_t *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            return -errno;
        if (mprotect(memory, GUARD_SIZE, PROT_NONE) < 0) {
            int error = -errno;
            munmap(memory, size);
            return error;
        }
        stack = memory; // also of the next launcher, if this one is killed
    }
    // They stay blocked in the launcher: Ctrl-C in a terminal is for the caller. libc's internal ones are among them.
    uint64_t all = ~(uint64_t)0, before = 0;
    raw4(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    long top = (long)(stack + GUARD_SIZE + STACK_SIZE);
    long pid = raw_clone(SYS_clone, CLONE_VM | CLONE_FILES | SIGCHLD, top, 0, serve, (void *)(intptr_t)socket);
    raw4(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, sizeof before);
    return pid < 0 ? pid : 0;
}

// MARK: The caller

static void close_channels(void) {
    if (channel >= 0)
        close(channel);
    if (launcher_channel >= 0)
        close(launcher_channel);
    channel = launcher_channel = -1;
}

/// There is no launcher any more.
static void reset(void) {
    close_channels();
    state = NOT_STARTED;
    start_timeout = START_TIMEOUT;
}

static void start(void) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return; // the next call tries again
    channel = ends[0];
    launcher_channel = ends[1];
    state = STARTING;
    if (create(launcher_channel) < 0)
        reset();
}

/// The child of a fork(2) has a copy of the state, and no launcher.
static void reset_after_fork(void) {
    reset();
    pthread_mutex_init(&mutex, NULL);
}

static void register_fork_handler(void) { pthread_atfork(NULL, NULL, reset_after_fork); }

/// Whether the launcher has a table of its own.
static bool is_ready(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_fork_handler);
    if (state == NOT_STARTED)
        start();
    if (state != STARTING)
        return state == READY;
    // It waits only if it closes its copy of a descriptor that this process was started with, and that waits.
    struct pollfd polled = {.fd = channel, .events = POLLIN};
    int timeout = start_timeout;
    start_timeout = 0;
    int count;
    do
        count = poll(&polled, 1, timeout);
    while (count < 0 && errno == EINTR);
    if (count <= 0)
        return false;
    uint64_t word;
    int none[LAUNCHER_CAPACITY];
    size_t received;
    bool is_started = receive_word(channel, &word, none, &received) == 1 && word == 0;
    state = is_started ? READY : FAILED;
    if (is_started) {
        // Its table has a copy. From now on the end of the launcher is the end of the channel.
        close(launcher_channel);
        launcher_channel = -1;
    } else {
        close_channels();
    }
    return is_started;
}

void launcher_prepare(void) {
    pthread_mutex_lock(&mutex);
    is_ready();
    pthread_mutex_unlock(&mutex);
}

/// Sends the call and receives the answer; 0 or -errno.
static int exchange(struct call *call, const int *numbers, long *result, int *returned) {
    int sent[LAUNCHER_CAPACITY];
    size_t count = 0;
    for (size_t i = 0; i < call->count; i++) {
        if (numbers[i] < 0) {
            call->numbers[i] = numbers[i];
        } else if (fcntl(numbers[i], F_GETFD) < 0) {
            call->numbers[i] = LAUNCHER_NOT_OPEN;
        } else {
            call->numbers[i] = SENT;
            sent[count++] = numbers[i];
        }
    }
    // For the descriptor in the answer.
    int reserved = fcntl(channel, F_DUPFD_CLOEXEC, 3);
    if (reserved < 0)
        return -errno;
    long error = send_word(channel, (uint64_t)(uintptr_t)call, sent, count);
    if (error < 0) {
        close(reserved);
        // It was killed, and the next call starts another one.
        if (error == -EPIPE)
            reset();
        return (int)error;
    }
    struct pollfd polled = {.fd = channel, .events = POLLIN};
    while (poll(&polled, 1, -1) < 0 && errno == EINTR)
        ;
    close(reserved);
    uint64_t word;
    int answered[LAUNCHER_CAPACITY];
    long received = receive_word(channel, &word, answered, &count);
    if (received == 1) {
        *result = (long)word;
        *returned = count > 0 ? answered[0] : -1;
        return 0;
    }
    // It was killed: the call may have been performed.
    reset();
    *result = -EIO;
    *returned = -1;
    return 0;
}

int launcher_call(
    launcher_function *function, void *argument, const int *numbers, size_t count, long *result, int *returned) {
    if (count > LAUNCHER_CAPACITY)
        return -E2BIG;
    int mapped[LAUNCHER_CAPACITY];
    struct call call = {function, argument, mapped, count};
    pthread_mutex_lock(&mutex);
    int error = is_ready() ? exchange(&call, numbers, result, returned) : -ENOSYS;
    pthread_mutex_unlock(&mutex);
    return error;
}
