#include "clinux_process.h"
#include "thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

// Reads of other processes' memory. A page can be mapped from a file system in user space, or be registered with
// userfaultfd(2), and the process that is to fill it may never do so. Then the thread that reads waits for ever. So another
// thread reads, and it is given up if there is no answer in time.

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

struct reader {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum { IDLE, ASKED, DONE } state;
    bool is_given_up; // the thread frees the reader
    pid_t pid;
    unsigned long address;
    size_t size;
    int result;
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

static int read_memory(pid_t pid, unsigned long address, void *buffer, size_t size) {
    struct iovec here = {.iov_base = buffer, .iov_len = size};
    struct iovec there = {.iov_base = (void *)address, .iov_len = size};
    ssize_t count = process_vm_readv(pid, &here, 1, &there, 1, 0);
    if (count < 0)
        return -errno;
    return count == (ssize_t)size ? 0 : -EFAULT;
}

static void release(struct reader *unused) {
    pthread_cond_destroy(&unused->changed);
    pthread_mutex_destroy(&unused->mutex);
    free(unused);
}

static void *run(void *argument) {
    struct reader *own = argument;
    pthread_setname_np(pthread_self(), "memory-reader");
    unsigned char bytes[CLINUX_LONGEST_READ];
    pthread_mutex_lock(&own->mutex);
    while (true) {
        while (own->state != ASKED)
            pthread_cond_wait(&own->changed, &own->mutex);
        pid_t pid = own->pid;
        unsigned long address = own->address;
        size_t size = own->size;
        pthread_mutex_unlock(&own->mutex);
        int result = read_memory(pid, address, bytes, size);
        pthread_mutex_lock(&own->mutex);
        if (own->is_given_up)
            break;
        memcpy(own->bytes, bytes, size);
        own->result = result;
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
static int ask(pid_t pid, unsigned long address, void *buffer, size_t size, int64_t end) {
    struct timespec limit = {.tv_sec = end / 1000000000, .tv_nsec = end % 1000000000};
    int result = -ETIMEDOUT;
    pthread_mutex_lock(&reader->mutex);
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
        if (result == 0)
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

static int read_in_time(pid_t pid, unsigned long address, void *buffer, size_t size) {
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
    int result = ask(pid, address, buffer, size, start + longest_wait);
    int64_t time = monotonic_time() - start;
    if (time > usual_time)
        delay += time - usual_time;
    return result;
}

int clinux_read_memory(pid_t pid, unsigned long address, void *buffer, size_t size) {
    if (size > CLINUX_LONGEST_READ)
        return -EINVAL;
    pthread_mutex_lock(&mutex);
    int result = read_in_time(pid, address, buffer, size);
    pthread_mutex_unlock(&mutex);
    return result;
}
