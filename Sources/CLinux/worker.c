#include "clinux_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
    CAPACITY = 64, // 64 completions of 32 bytes fit into the smallest pipe (a page), so writing never waits
    STACK_SIZE = 256 * 1024,
    RANGES = 256, // mappings advised in one call; IOV_MAX is 1,024
};

const unsigned clinux_worker_capacity = CAPACITY;

struct clinux_worker {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct clinux_job queue[CAPACITY];
    unsigned first, queued;
    unsigned outstanding; // queued, running or not collected
    bool started;
    bool stopping;
    int holders; // the owner and the thread; the last one frees
    int ends[2];
};

static void let_go(struct clinux_worker *worker) {
    pthread_mutex_lock(&worker->mutex);
    bool last = --worker->holders == 0;
    pthread_mutex_unlock(&worker->mutex);
    if (!last)
        return;
    for (unsigned i = 0; i < worker->queued; i++)
        close(worker->queue[(worker->first + i) % CAPACITY].descriptor);
    close(worker->ends[1]);
    pthread_cond_destroy(&worker->changed);
    pthread_mutex_destroy(&worker->mutex);
    free(worker);
}

static uint64_t microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static int reclaim(const struct clinux_job *job) {
    char text[32];
    int length = snprintf(text, sizeof text, "%llu", (unsigned long long)job->amount);
    return write(job->descriptor, text, (size_t)length) < 0 ? -errno : 0;
}

/// Advises a batch; what the kernel refuses (special mappings) is skipped.
static int advise(const struct clinux_job *job, struct iovec *ranges, size_t count, uint64_t *advised) {
    size_t index = 0;
    while (index < count) {
        ssize_t bytes = syscall(SYS_process_madvise, job->descriptor, ranges + index, count - index, MADV_PAGEOUT, 0);
        if (bytes < 0 && errno != EINVAL && errno != ENOMEM && errno != EFAULT)
            return -errno;
        uint64_t rest = bytes < 0 ? 0 : (uint64_t)bytes;
        *advised += rest;
        while (index < count && rest >= ranges[index].iov_len)
            rest -= ranges[index++].iov_len;
        index++; // the one it stopped at
    }
    return 0;
}

/// Private writable memory: the part that has nowhere to go but swap, and that nobody else is using.
static int page_out(const struct clinux_job *job, uint64_t *advised) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", job->pid);
    FILE *maps = fopen(path, "re");
    if (!maps)
        return errno == ENOENT ? -ESRCH : -errno;
    struct iovec ranges[RANGES];
    size_t count = 0;
    int result = 0;
    char *line = NULL;
    size_t size = 0;
    while (result == 0 && getline(&line, &size, maps) >= 0) {
        unsigned long start, end;
        char access[5];
        if (sscanf(line, "%lx-%lx %4s", &start, &end, access) != 3 || start >= end)
            continue;
        if (access[1] != 'w' || access[3] != 'p')
            continue;
        ranges[count++] = (struct iovec){(void *)start, end - start};
        if (count == RANGES) {
            result = advise(job, ranges, count, advised);
            count = 0;
        }
    }
    if (result == 0)
        result = advise(job, ranges, count, advised);
    free(line);
    fclose(maps);
    return result;
}

static struct clinux_completion perform(const struct clinux_job *job) {
    struct clinux_completion done = {.token = job->token, .kind = job->kind};
    uint64_t before = microseconds();
    switch (job->kind) {
    case CLINUX_JOB_RELEASE:
        done.result = syscall(SYS_process_mrelease, job->descriptor, 0) < 0 ? -errno : 0;
        break;
    case CLINUX_JOB_RECLAIM: done.result = reclaim(job); break;
    case CLINUX_JOB_PAGE_OUT: done.result = page_out(job, &done.amount); break;
    default: done.result = -EINVAL;
    }
    done.elapsed_microseconds = microseconds() - before;
    close(job->descriptor);
    return done;
}

static void *work(void *argument) {
    struct clinux_worker *worker = argument;
    for (;;) {
        pthread_mutex_lock(&worker->mutex);
        while (worker->queued == 0 && !worker->stopping)
            pthread_cond_wait(&worker->changed, &worker->mutex);
        if (worker->stopping) {
            pthread_mutex_unlock(&worker->mutex);
            break;
        }
        struct clinux_job job = worker->queue[worker->first];
        worker->first = (worker->first + 1) % CAPACITY;
        worker->queued--;
        pthread_mutex_unlock(&worker->mutex);
        struct clinux_completion done = perform(&job);
        // Fails only when nobody is there to read it.
        while (write(worker->ends[1], &done, sizeof done) < 0 && errno == EINTR)
            ;
    }
    let_go(worker);
    return NULL;
}

/// With every signal blocked, so that the daemon's arrive where they are waited for.
static int start(struct clinux_worker *worker) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error)
        return -error;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    error = pthread_create(&thread, &attributes, work, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (error)
        return -error;
    pthread_setname_np(thread, "memory-reaper"); // for ps -L and top
    worker->started = true;
    worker->holders++;
    return 0;
}

int clinux_worker_create(struct clinux_worker **result, int *completions) {
    struct clinux_worker *worker = calloc(1, sizeof *worker);
    if (!worker)
        return -ENOMEM;
    if (pipe2(worker->ends, O_CLOEXEC | O_NONBLOCK) < 0) {
        int error = -errno;
        free(worker);
        return error;
    }
    pthread_mutex_init(&worker->mutex, NULL);
    pthread_cond_init(&worker->changed, NULL);
    worker->holders = 1;
    *result = worker;
    *completions = worker->ends[0];
    return 0;
}

int clinux_worker_submit(struct clinux_worker *worker, const struct clinux_job *job) {
    pthread_mutex_lock(&worker->mutex);
    int error = 0;
    if (worker->outstanding == CAPACITY)
        error = -EAGAIN;
    else if (!worker->started)
        error = start(worker);
    if (error == 0) {
        worker->queue[(worker->first + worker->queued++) % CAPACITY] = *job;
        worker->outstanding++;
        pthread_cond_signal(&worker->changed);
    }
    pthread_mutex_unlock(&worker->mutex);
    return error;
}

int clinux_worker_collect(struct clinux_worker *worker, struct clinux_completion *completion) {
    ssize_t size;
    do
        size = read(worker->ends[0], completion, sizeof *completion);
    while (size < 0 && errno == EINTR);
    if (size < 0)
        return errno == EAGAIN ? 0 : -errno;
    if (size != sizeof *completion)
        return -EIO;
    pthread_mutex_lock(&worker->mutex);
    worker->outstanding--;
    pthread_mutex_unlock(&worker->mutex);
    return 1;
}

void clinux_worker_release(struct clinux_worker *worker) {
    pthread_mutex_lock(&worker->mutex);
    worker->stopping = true;
    pthread_cond_signal(&worker->changed);
    pthread_mutex_unlock(&worker->mutex);
    close(worker->ends[0]);
    let_go(worker);
}
