#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// The one helper thread: for calls that hold their caller as long as the memory they free is large.

enum clinux_job_kind {
    /// process_mrelease(2) of `descriptor`, a pidfd.
    CLINUX_JOB_RELEASE = 1,
    /// Writes `amount` in decimal into `descriptor`, a cgroup's memory.reclaim.
    CLINUX_JOB_RECLAIM,
    /// process_madvise(2), MADV_PAGEOUT, for the private memory of `descriptor`, a pidfd of `pid`.
    CLINUX_JOB_PAGE_OUT,
};

struct clinux_job {
    uint64_t token;
    int32_t kind;
    int32_t descriptor; // closed by the worker
    uint64_t amount;
    pid_t pid;
};

struct clinux_completion {
    uint64_t token;
    int32_t kind;
    int32_t result; // 0 or -errno
    uint64_t elapsed_microseconds;
    uint64_t amount; // bytes advised (page out)
};

struct clinux_worker;

/// No more than so many jobs are queued, running or not yet collected.
extern const unsigned clinux_worker_capacity;

/// 0 or -errno; the thread starts with the first job.
int clinux_worker_create(struct clinux_worker **worker, int *completions);
/// 0, -EAGAIN when it is full, or -errno; the descriptor is taken over only with 0.
int clinux_worker_submit(struct clinux_worker *worker, const struct clinux_job *job);
/// 1 with a completion, 0 when there is none now, or -errno.
int clinux_worker_collect(struct clinux_worker *worker, struct clinux_completion *completion);
/// Never waits: a thread in the middle of a job ends after it.
void clinux_worker_release(struct clinux_worker *worker);
