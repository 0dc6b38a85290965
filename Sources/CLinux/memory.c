#include "clinux_process.h"
#include "thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

// Reads and writes of other processes' memory. A page can be mapped from a file system in user space, or be registered with
// userfaultfd(2), and the process that is to fill it may never do so. Then the thread that reads waits for ever. So another
// thread reads, and it is given up if there is no answer in time. The same thread visits other processors to read their clocks: a
// processor may be occupied by a process of a higher priority.

enum {
    MOST_GIVEN_UP = 4, // threads that still wait; with so many, nothing is read
};

// In nanoseconds.
static const int64_t longest_wait = 100 * 1000 * 1000;
// What a read may take before the rest is counted, how much may be counted, and how much of it passes in 1 s: a process whose
// pages come slowly delays the caller by no more than 2 % of the time.
static const int64_t usual_time = 200 * 1000;
static const int64_t most_delay = 200 * 1000 * 1000;
static const int64_t delay_share = 50;

enum task { READ, WRITE, READ_CLOCK };

struct reader {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum { IDLE, ASKED, DONE } state;
    bool is_given_up; // the thread frees the reader
    enum task task;
    pid_t pid; // of a clock: the number of the processor
    unsigned long address;
    size_t size;
    int result;
    int64_t duration; // of the read itself, without the time until the reader ran
    unsigned char bytes[CLINUX_LONGEST_READ];
};

/// Held by the thread that asks.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct reader *reader;
static atomic_int given_up;
/// The process that has started the reader: a child of fork(2) has none of the threads.
static pid_t owner;
static int64_t delay, delay_time;

static int64_t monotonic_time(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int move_memory(enum task task, pid_t pid, unsigned long address, void *buffer, size_t size) {
    struct iovec here = {.iov_base = buffer, .iov_len = size};
    struct iovec there = {.iov_base = (void *)address, .iov_len = size};
    ssize_t count = task == WRITE ? process_vm_writev(pid, &here, 1, &there, 1, 0)
                                  : process_vm_readv(pid, &here, 1, &there, 1, 0);
    if (count < 0)
        return -errno;
    return count == (ssize_t)size ? 0 : -EFAULT;
}

int64_t clinux_execution_start(const char *text) {
    static const char name[] = "\nse.exec_start";
    const char *line = strncmp(text, name + 1, sizeof name - 2) == 0 ? text : strstr(text, name);
    const char *colon = line ? strchr(line, ':') : NULL;
    long long whole, part;
    int point = 0, end = 0;
    // Milliseconds with six decimals.
    if (!colon || sscanf(colon + 1, " %13lld.%n%6lld%n", &whole, &point, &part, &end) != 2 || whole < 0 || part < 0 ||
        end - point != 6 || colon[1 + end] != '\n')
        return -EIO;
    return (int64_t)whole * 1000000 + part;
}

/// That of this thread, or -errno.
static int64_t own_execution_start(void) {
    char text[4096];
    int file = open("/proc/thread-self/sched", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -errno;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0)
        return -EIO;
    text[length] = 0;
    return clinux_execution_start(text);
}

/// What is to be added to the clock of a processor, on which the scheduler counts, to have CLOCK_MONOTONIC.
static int read_clock(int processor, int64_t *offset) {
    cpu_set_t before, one;
    if (processor < 0 || processor >= CPU_SETSIZE || sched_getaffinity(0, sizeof before, &before) < 0)
        return -EINVAL;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    if (sched_setaffinity(0, sizeof one, &one) < 0)
        return -errno;
    int64_t now = monotonic_time();
    int64_t start = own_execution_start();
    sched_setaffinity(0, sizeof before, &before);
    if (start < 0)
        return (int)start;
    *offset = now - start;
    return 0;
}

static int carry_out(enum task task, pid_t pid, unsigned long address, void *buffer, size_t size) {
    return task == READ_CLOCK ? read_clock(pid, buffer) : move_memory(task, pid, address, buffer, size);
}

static void release(struct reader *unused) {
    pthread_cond_destroy(&unused->changed);
    pthread_mutex_destroy(&unused->mutex);
    free(unused);
}

static void *run(void *argument) {
    struct reader *own = argument;
    pthread_setname_np(pthread_self(), "memory-reader");
    _Alignas(int64_t) unsigned char bytes[CLINUX_LONGEST_READ];
    pthread_mutex_lock(&own->mutex);
    while (true) {
        while (own->state != ASKED)
            pthread_cond_wait(&own->changed, &own->mutex);
        pid_t pid = own->pid;
        unsigned long address = own->address;
        size_t size = own->size;
        enum task task = own->task;
        memcpy(bytes, own->bytes, size);
        pthread_mutex_unlock(&own->mutex);
        int64_t start = monotonic_time();
        int result = carry_out(task, pid, address, bytes, size);
        int64_t duration = monotonic_time() - start;
        pthread_mutex_lock(&own->mutex);
        if (own->is_given_up)
            break;
        memcpy(own->bytes, bytes, size);
        own->result = result;
        own->duration = duration;
        own->state = DONE;
        pthread_cond_broadcast(&own->changed);
    }
    pthread_mutex_unlock(&own->mutex);
    release(own);
    atomic_fetch_sub(&given_up, 1);
    return NULL;
}

static struct reader *start_reader(void) {
    struct reader *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->changed, &clock);
    pthread_condattr_destroy(&clock);
    if (thread_start(run, made) == 0)
        return made;
    release(made);
    return NULL;
}

/// Asks the reader, and waits for its answer until a time.
static int ask(
    enum task task, pid_t pid, unsigned long address, void *buffer, size_t size, int64_t end, int64_t *duration) {
    struct timespec limit = {.tv_sec = end / 1000000000, .tv_nsec = end % 1000000000};
    int result = -ETIMEDOUT;
    pthread_mutex_lock(&reader->mutex);
    reader->task = task;
    if (task == WRITE)
        memcpy(reader->bytes, buffer, size);
    reader->pid = pid;
    reader->address = address;
    reader->size = size;
    reader->state = ASKED;
    pthread_cond_broadcast(&reader->changed);
    int error = 0;
    while (reader->state != DONE && error == 0)
        error = pthread_cond_timedwait(&reader->changed, &reader->mutex, &limit);
    if (reader->state == DONE) {
        result = reader->result;
        *duration = reader->duration;
        if (result == 0 && task != WRITE)
            memcpy(buffer, reader->bytes, size);
        reader->state = IDLE;
        pthread_mutex_unlock(&reader->mutex);
        return result;
    }
    reader->is_given_up = true;
    atomic_fetch_add(&given_up, 1);
    pthread_mutex_unlock(&reader->mutex);
    reader = NULL;
    return result;
}

static int ask_in_time(enum task task, pid_t pid, unsigned long address, void *buffer, size_t size) {
    if (owner != getpid()) {
        owner = getpid();
        reader = NULL;
        atomic_store(&given_up, 0);
    }
    int64_t start = monotonic_time();
    delay -= (start - delay_time) / delay_share;
    if (delay < 0)
        delay = 0;
    delay_time = start;
    if (delay >= most_delay || atomic_load(&given_up) >= MOST_GIVEN_UP)
        return -EBUSY;
    if (!reader)
        reader = start_reader();
    if (!reader)
        return -EBUSY;
    int64_t time = longest_wait;
    int result = ask(task, pid, address, buffer, size, start + longest_wait, &time);
    // A processor that is busy is no fault of the process that is read.
    if (task != READ_CLOCK && time > usual_time)
        delay += time - usual_time;
    return result;
}

static int ask_alone(enum task task, pid_t pid, unsigned long address, void *buffer, size_t size) {
    if (size > CLINUX_LONGEST_READ)
        return -EINVAL;
    pthread_mutex_lock(&mutex);
    int result = ask_in_time(task, pid, address, buffer, size);
    pthread_mutex_unlock(&mutex);
    return result;
}

int clinux_read_memory(pid_t pid, unsigned long address, void *buffer, size_t size) {
    return ask_alone(READ, pid, address, buffer, size);
}

int clinux_write_memory(pid_t pid, unsigned long address, const void *buffer, size_t size) {
    unsigned char bytes[CLINUX_LONGEST_READ];
    if (size > sizeof bytes)
        return -EINVAL;
    memcpy(bytes, buffer, size);
    return ask_alone(WRITE, pid, address, bytes, size);
}

int clinux_clock_offset(int processor, int64_t *offset) {
    return ask_alone(READ_CLOCK, processor, 0, offset, sizeof *offset);
}
