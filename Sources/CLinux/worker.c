#include "clinux_worker.h"
#include "clinux_watch.h"
#include "diagnose.h"
#include "footprint.h"
#include "input.h"
#include "pages.h"
#include "readfiles.h"
#include "reclaim.h"
#include "thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    CAPACITY = 64, // 64 completions of 64 bytes fit into the smallest pipe (one page), so that writing never blocks
    FIRST_QUEUE = 16, // jobs
};

const unsigned clinux_worker_capacity = CAPACITY;
_Static_assert(CAPACITY * sizeof(struct clinux_completion) <= 4096, "completions fit into a page");

struct clinux_worker {
    pthread_mutex_t mutex;
    struct clinux_job *queue; // a ring of `capacity` jobs
    unsigned first, queued, capacity;
    unsigned pending;     // queued or running
    unsigned uncollected; // with a completion: queued, running or not collected
    int use;
    int closing; // the descriptor of the job that runs, if that only closes it; or -1
    bool is_busy; // a job runs
    pid_t thread; // valid while `is_running`
    bool is_running;
    bool is_held; // jobs are queued and no thread runs; it counts as a holder nevertheless
    bool is_stopping;
    struct clinux_worker *next, **link; // in `workers`: what points to this worker is at `link`
    int holders; // the owner and the thread; the last one frees the worker
    int completions;
    char name[16];
    char owner[CLINUX_OWNER];
    struct footprint *footprint; // only the thread uses it; NULL until it measures: each app has workers, and few measure
};

// All workers. This mutex is locked before a worker's.
static pthread_mutex_t workers_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct clinux_worker *workers;
/// Written under `workers_mutex`.
static _Atomic(bool) is_closing_held;
/// How many workers that examine have a job that runs.
static _Atomic(size_t) examining;

static bool only_closes(const struct clinux_worker *worker) {
    return worker->use == CLINUX_WORKER_CLOSES || worker->use == CLINUX_WORKER_CLOSES_FILES;
}

static void add_to_workers(struct clinux_worker *worker) {
    pthread_mutex_lock(&workers_mutex);
    worker->next = workers;
    worker->link = &workers;
    if (workers)
        workers->link = &worker->next;
    workers = worker;
    pthread_mutex_unlock(&workers_mutex);
}

static void remove_from_workers(struct clinux_worker *worker) {
    pthread_mutex_lock(&workers_mutex);
    *worker->link = worker->next;
    if (worker->next)
        worker->next->link = worker->link;
    pthread_mutex_unlock(&workers_mutex);
}

/// Also unlocks the mutex.
static void drop_holder(struct clinux_worker *worker) {
    bool is_last = --worker->holders == 0;
    pthread_mutex_unlock(&worker->mutex);
    if (!is_last)
        return;
    remove_from_workers(worker);
    if (worker->completions >= 0)
        close(worker->completions);
    pthread_mutex_destroy(&worker->mutex);
    free(worker->queue);
    free(worker->footprint);
    free(worker);
}

static uint64_t microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static bool reports_completion(const struct clinux_job *job) { return job->kind != CLINUX_JOB_CLOSE; }

static int free_start(const struct clinux_job *job) {
    if (fallocate(job->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)job->bytes) == 0)
        return 0;
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        return -errno;
    return ftruncate(job->descriptor, 0) < 0 ? -errno : 0;
}

static int carry_out(struct clinux_worker *worker, const struct clinux_job *job, struct clinux_completion *done) {
    if (job->kind == CLINUX_JOB_RELEASE_MEMORY)
        return syscall(SYS_process_mrelease, job->descriptor, 0) < 0 ? -errno : 0;
    if (job->kind == CLINUX_JOB_EXAMINE_INPUT)
        return input_examine(job->descriptor, done);
    if (job->kind == CLINUX_JOB_LIST_TARGETS)
        return clinux_list_targets(job->descriptor, job->thread, job->number, job->output, &done->bytes);
    if (job->kind == CLINUX_JOB_DIAGNOSE)
        return diagnose(job->descriptor, done);
    if (job->kind == CLINUX_JOB_FREE_START)
        return free_start(job);
    if (job->kind == CLINUX_JOB_RECLAIM_GROUP)
        return reclaim_group(job->descriptor, job->bytes);
    if (job->kind == CLINUX_JOB_RECLAIM_PROCESS) {
        done->bytes = job->bytes;
        return reclaim_process(job->descriptor, job->thread, job->length, &done->bytes);
    }
    if (job->kind == CLINUX_JOB_RECORD_PAGES)
        return pages_record(job->descriptor);
    if (job->kind == CLINUX_JOB_BRING_BACK)
        return pages_bring_back(job->descriptor, job->bytes);
    if (job->kind == CLINUX_JOB_READ_FILES)
        return read_files(job->descriptor, job->output, &done->bytes);
    if (job->kind == CLINUX_JOB_WATCH_FILE)
        return watch_file(job->descriptor, job->number, job->output);
    if (!worker->footprint && !(worker->footprint = calloc(1, sizeof *worker->footprint)))
        return -ENOMEM;
    footprint_begin(worker->footprint, job->token);
    switch (job->kind) {
    case CLINUX_JOB_MEASURE_MEMORY: return footprint_measure(worker->footprint, job->descriptor, done);
    case CLINUX_JOB_FIND_FILES: return footprint_find_files(worker->footprint, job->descriptor, done);
    case CLINUX_JOB_FIND_MAPPED: return footprint_find_mapped(worker->footprint, job->descriptor, done);
    default: return -EINVAL;
    }
}

static void perform(struct clinux_worker *worker, struct clinux_job *job) {
    struct clinux_completion done = {.token = job->token};
    uint64_t before = microseconds();
    done.result = carry_out(worker, job, &done);
    done.elapsed_microseconds = microseconds() - before;
    if (job->kind == CLINUX_JOB_EXAMINE_INPUT) {
        close(job->descriptor);
        job->descriptor = -1;
    }
    if (job->output >= 0 && done.result == 0 && lseek(job->output, 0, SEEK_SET) < 0)
        done.result = -errno;
    // Fails only after the reader has closed its end.
    while (write(worker->completions, &done, sizeof done) < 0 && errno == EINTR)
        ;
}

static void *work(void *argument) {
    struct clinux_worker *worker = argument;
    pthread_mutex_lock(&worker->mutex);
    pthread_setname_np(pthread_self(), worker->name);
    worker->thread = gettid();
    while (worker->queued > 0) {
        if (only_closes(worker) && is_closing_held) {
            worker->is_running = false;
            worker->is_held = true;
            pthread_mutex_unlock(&worker->mutex);
            return NULL;
        }
        struct clinux_job job = worker->queue[worker->first];
        worker->first = (worker->first + 1) % worker->capacity;
        worker->queued--;
        worker->closing = reports_completion(&job) ? -1 : job.descriptor;
        worker->is_busy = true;
        if (worker->use == CLINUX_WORKER_EXAMINES)
            examining++;
        bool is_stopping = worker->is_stopping;
        pthread_mutex_unlock(&worker->mutex);
        if (reports_completion(&job) && !is_stopping)
            perform(worker, &job);
        if (job.descriptor >= 0)
            close(job.descriptor);
        if (job.output >= 0)
            close(job.output);
        pthread_mutex_lock(&worker->mutex);
        worker->closing = -1;
        worker->is_busy = false;
        if (worker->use == CLINUX_WORKER_EXAMINES)
            examining--;
        worker->pending--;
    }
    worker->is_running = false;
    drop_holder(worker);
    return NULL;
}

/// The caller holds the mutex.
static int start(struct clinux_worker *worker) {
    int error = thread_reuse(work, worker);
    if (error < 0)
        return error;
    worker->is_running = true;
    worker->thread = 0;
    if (!worker->is_held)
        worker->holders++;
    worker->is_held = false;
    return 0;
}

/// Reserves space for one more job in the ring; 0 or -ENOMEM.
static int reserve(struct clinux_worker *worker) {
    if (worker->queued < worker->capacity)
        return 0;
    unsigned capacity = worker->capacity ? worker->capacity * 2 : FIRST_QUEUE;
    struct clinux_job *queue = malloc(capacity * sizeof *queue);
    if (!queue)
        return -ENOMEM;
    for (unsigned i = 0; i < worker->queued; i++)
        queue[i] = worker->queue[(worker->first + i) % worker->capacity];
    free(worker->queue);
    worker->queue = queue;
    worker->capacity = capacity;
    worker->first = 0;
    return 0;
}

int clinux_worker_create(struct clinux_worker **result, const char *name, int use, int *completions) {
    struct clinux_worker *worker = calloc(1, sizeof *worker);
    if (!worker)
        return -ENOMEM;
    worker->use = use;
    worker->closing = -1;
    worker->completions = -1;
    if (completions) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
            int error = -errno;
            free(worker);
            return error;
        }
        *completions = ends[0];
        worker->completions = ends[1];
    }
    pthread_mutex_init(&worker->mutex, NULL);
    worker->holders = 1;
    strncpy(worker->name, name, sizeof worker->name - 1);
    add_to_workers(worker);
    *result = worker;
    return 0;
}

int clinux_worker_submit(struct clinux_worker *worker, const struct clinux_job *job) {
    bool reports = reports_completion(job);
    if (reports && (worker->completions < 0 || only_closes(worker)))
        return -EINVAL;
    pthread_mutex_lock(&worker->mutex);
    int error = reports && worker->uncollected == CAPACITY ? -EAGAIN : reserve(worker);
    bool is_held = only_closes(worker) && is_closing_held;
    if (error == 0 && !worker->is_running && !is_held)
        error = start(worker);
    if (error == 0 && !worker->is_running && !worker->is_held) {
        worker->is_held = true;
        worker->holders++;
    }
    if (error == 0) {
        worker->queue[(worker->first + worker->queued++) % worker->capacity] = *job;
        worker->pending++;
        worker->uncollected += reports;
    }
    pthread_mutex_unlock(&worker->mutex);
    return error;
}

void clinux_worker_set_owner(struct clinux_worker *worker, const char *owner) {
    pthread_mutex_lock(&worker->mutex);
    strncpy(worker->owner, owner, sizeof worker->owner - 1);
    pthread_mutex_unlock(&worker->mutex);
}

unsigned clinux_worker_pending(struct clinux_worker *worker) {
    pthread_mutex_lock(&worker->mutex);
    unsigned pending = worker->pending;
    pthread_mutex_unlock(&worker->mutex);
    return pending;
}

int clinux_worker_collect(struct clinux_worker *worker, int completions, struct clinux_completion *completion) {
    ssize_t size;
    do
        size = read(completions, completion, sizeof *completion);
    while (size < 0 && errno == EINTR);
    if (size < 0)
        return errno == EAGAIN ? 0 : -errno;
    if (size != sizeof *completion)
        return -EIO;
    pthread_mutex_lock(&worker->mutex);
    worker->uncollected--;
    pthread_mutex_unlock(&worker->mutex);
    return 1;
}

void clinux_worker_release(struct clinux_worker *worker) {
    pthread_mutex_lock(&worker->mutex);
    worker->is_stopping = true;
    drop_holder(worker);
}

// MARK: All workers that close descriptors

void clinux_closing_hold(void) {
    pthread_mutex_lock(&workers_mutex);
    is_closing_held = true;
    pthread_mutex_unlock(&workers_mutex);
}

void clinux_closing_continue(void) {
    pthread_mutex_lock(&workers_mutex);
    is_closing_held = false;
    for (struct clinux_worker *worker = workers; worker; worker = worker->next) {
        pthread_mutex_lock(&worker->mutex);
        // Without memory for a thread they wait for the next job.
        if (only_closes(worker) && worker->queued > 0 && !worker->is_running)
            start(worker);
        pthread_mutex_unlock(&worker->mutex);
    }
    pthread_mutex_unlock(&workers_mutex);
}

size_t clinux_closing_waiting(int *descriptors, size_t capacity) {
    size_t count = 0;
    pthread_mutex_lock(&workers_mutex);
    for (struct clinux_worker *worker = workers; worker; worker = worker->next) {
        // A thread that sees the mutex unlocked after this sees `is_closing_held`.
        pthread_mutex_lock(&worker->mutex);
        if (worker->closing >= 0 && count++ < capacity)
            descriptors[count - 1] = worker->closing;
        for (unsigned i = 0; only_closes(worker) && i < worker->queued; i++)
            if (count++ < capacity)
                descriptors[count - 1] = worker->queue[(worker->first + i) % worker->capacity].descriptor;
        pthread_mutex_unlock(&worker->mutex);
    }
    pthread_mutex_unlock(&workers_mutex);
    return count;
}

// MARK: Workers that hold up the end of the process

/// Whether a thread of this process waits in a call that no signal ends (proc_pid_stat(5)).
static bool is_uninterruptible(pid_t thread) {
    char path[48], text[128];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length < 0)
        return false;
    text[length] = 0;
    // The name is that of a worker, so it contains no parenthesis.
    const char *name_end = strchr(text, ')');
    return name_end && name_end[1] == ' ' && name_end[2] == 'D';
}

/// The caller holds the worker's mutex.
static bool is_blocked(const struct clinux_worker *worker) {
    switch (worker->use) {
    case CLINUX_WORKER_CLOSES_FILES: return worker->pending > 0;
    case CLINUX_WORKER_EXAMINES: return worker->is_busy;
    // A socket that lingers is no matter: a signal ends its close. The lock of a pipe is one.
    case CLINUX_WORKER_CLOSES: return worker->is_running && worker->is_busy && is_uninterruptible(worker->thread);
    default: return false;
    }
}

size_t clinux_workers_examining(void) { return examining; }

size_t clinux_workers_blocked(struct clinux_blocked_worker *found, size_t capacity) {
    size_t count = 0;
    pthread_mutex_lock(&workers_mutex);
    for (struct clinux_worker *worker = workers; worker; worker = worker->next) {
        pthread_mutex_lock(&worker->mutex);
        if (is_blocked(worker) && count++ < capacity) {
            found[count - 1].use = worker->use;
            memcpy(found[count - 1].owner, worker->owner, sizeof worker->owner);
        }
        pthread_mutex_unlock(&worker->mutex);
    }
    pthread_mutex_unlock(&workers_mutex);
    return count;
}
