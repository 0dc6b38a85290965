#pragma once

#include <stddef.h>
#include <stdint.h>

// A helper thread for system calls that can block their caller for a long time: close(2) of a descriptor that another
// program provided, process_mrelease(2) of a large process, and measuring its memory. The thread exists only while there are
// jobs.

enum clinux_job_kind {
    /// close(2) of `descriptor`.
    CLINUX_JOB_CLOSE = 1,
    /// process_mrelease(2) of `descriptor`, a pidfd, which is closed afterwards. Reports a completion.
    CLINUX_JOB_RELEASE_MEMORY,
    // The next three are for `descriptor`, the folder /proc/PID of a process, which is closed afterwards. Each reports a
    // completion. Jobs with the same token are for the processes of one app; another token begins another app.

    /// Its share of anonymous and shared memory, and what of it is swapped (proc_pid_smaps(5)). Not shared memory that outlives
    /// it: files with a name in a tmpfs, and System V segments that are not marked for removal.
    CLINUX_JOB_MEASURE_MEMORY,
    /// The sizes of files in memory that it has open, that have no name, and that no process of the app before had open.
    CLINUX_JOB_FIND_FILES,
    /// The sizes of those among the files found that it maps, and that no process of the app before mapped.
    CLINUX_JOB_FIND_MAPPED,
    /// What waits at `descriptor`, a socket or a pipe, and the other end. It is closed before the completion is reported: the
    /// caller may wait for that. These calls take the lock of the socket or pipe, which a writer holds while it copies from
    /// memory that another program provides.
    CLINUX_JOB_EXAMINE_INPUT,
    /// Reads `descriptor`, the file /proc/PID/fdinfo/FD of an epoll descriptor, and writes each target to `output` as a
    /// `clinux_epoll_target`; the offset is 0 afterwards. Both are closed. The kernel takes the lock of the epoll descriptor,
    /// which another process holds while it asks a file of a FUSE server whether it is ready; and it makes the whole text at
    /// once. `bytes` of the completion is the number of targets.
    CLINUX_JOB_LIST_TARGETS,
    /// Sends the requests of NETLINK_SOCK_DIAG (sock_diag(7)) that `descriptor` contains, a file in memory, and writes the
    /// kernel's answers after them, from the next multiple of 4 on. `bytes` of the completion is the size of the answers, also
    /// after an error. For the counters of a TCP socket the kernel waits for the socket's lock.
    CLINUX_JOB_DIAGNOSE,
    /// Frees the space of `descriptor`, a regular file, up to the offset `bytes` (FALLOC_FL_PUNCH_HOLE): what follows stays where it is.
    /// A file system without that gets an empty file. It waits until the disk has what is freed. Reports a completion.
    CLINUX_JOB_FREE_START,
    /// Pushes `bytes` of the group with the folder `descriptor` out to swap (memory.reclaim). Reports a completion.
    CLINUX_JOB_RECLAIM_GROUP,
    /// Pushes private memory of a process out to swap (MADV_PAGEOUT), at most `length` bytes that are in memory, from address `bytes` on.
    /// `descriptor` is its pidfd, `thread` its pid. `bytes` of the completion is the address where to continue; 0: nothing is left.
    CLINUX_JOB_RECLAIM_PROCESS,
    /// Reads the files whose paths `descriptor` contains, a file in memory, each with a NUL. Of each it writes the length to `output`, 32
    /// bits, -1 if it cannot be read, and then what it contains, at most 4,096 bytes; the offset is 0 afterwards. Both are
    /// closed. `bytes` of the completion is the number of files.
    CLINUX_JOB_READ_FILES,
    /// Watches a file with `descriptor`, of inotify(7): the nearest folder above it that exists, instead of the folder with the watch
    /// `number`. `output` is a file in memory with the path; a `clinux_file_state` overwrites it. Both are closed. A FUSE server
    /// may never answer.
    CLINUX_JOB_WATCH_FILE,
    /// Finds the pages that processes have in memory. `descriptor` is a file in memory with their IDs; a record (clinux_pages.h) replaces them.
    CLINUX_JOB_RECORD_PAGES,
    /// Asks the kernel to read the pages of such a record from swap (MADV_WILLNEED), until the time `bytes` of CLOCK_MONOTONIC in µs.
    CLINUX_JOB_BRING_BACK,
};

struct clinux_file_state {
    int32_t watch;  // of the folder, or -1
    int32_t exists; // as a regular file; then the rest is its size, and when it was changed
    int64_t size, seconds, nanoseconds;
};

struct clinux_job {
    uint64_t token;
    int32_t kind;
    int32_t descriptor;
    int32_t output; // of CLINUX_JOB_LIST_TARGETS, _READ_FILES and _WATCH_FILE; otherwise -1
    int32_t thread; // of CLINUX_JOB_LIST_TARGETS: the thread that has the epoll descriptor; of _RECLAIM_PROCESS: the process
    int32_t number; // of the epoll descriptor, there; of CLINUX_JOB_WATCH_FILE the watch before, or -1
    uint64_t bytes; // of CLINUX_JOB_FREE_START, _RECLAIM_GROUP, _RECLAIM_PROCESS and _BRING_BACK
    uint64_t length; // of CLINUX_JOB_RECLAIM_PROCESS
};

struct clinux_completion {
    uint64_t token;
    uint64_t elapsed_microseconds;
    uint64_t bytes;  // of the jobs that measure
    uint64_t shared; // of CLINUX_JOB_MEASURE_MEMORY: shared memory, a part of `bytes`
    int32_t result; // 0 or -errno
    // The next are of CLINUX_JOB_EXAMINE_INPUT.
    uint8_t is_half_full; // the buffer towards the reader
    uint8_t is_local;     // the peer is on this machine; true of a pipe
    uint16_t port;
    uint8_t domain; // AF_INET or AF_INET6: `address` and `port` are those of the peer; otherwise 0
    uint8_t unused[3];
    uint8_t address[16];
};

struct clinux_worker;

/// The most jobs with a completion that are queued, running or not yet collected.
extern const unsigned clinux_worker_capacity;

/// What a worker is for.
enum clinux_worker_use {
    /// Jobs with a completion.
    CLINUX_WORKER_REPORTS = 1,
    /// Only CLINUX_JOB_CLOSE. Its descriptors can be passed to another program (clinux_closing_hold).
    CLINUX_WORKER_CLOSES,
    /// Only CLINUX_JOB_CLOSE, of descriptors whose every close(2) can block in a way that no signal ends: also those of
    /// execve(2) and of the end of the process.
    CLINUX_WORKER_CLOSES_FILES,
    /// Jobs with a completion that can block in a way that no signal ends: the lock of a socket, a pipe or an epoll descriptor.
    CLINUX_WORKER_EXAMINES,
};

/// The longest ID of an app has 128 bytes.
enum { CLINUX_OWNER = 136 };

/// 0 or -errno. `name` is the name of the thread (pthread_setname_np(3)). `completions` receives the read end of a pipe,
/// which the caller closes; NULL if it only closes descriptors.
int clinux_worker_create(struct clinux_worker **worker, const char *name, int use, int *completions);
/// 0, -EAGAIN if the worker is at its capacity, or -errno. The worker owns the job's descriptor only after 0.
int clinux_worker_submit(struct clinux_worker *worker, const struct clinux_job *job);
/// Sets the name of the app that the jobs are for. At most CLINUX_OWNER - 1 bytes of it are kept.
void clinux_worker_set_owner(struct clinux_worker *worker, const char *owner);
/// Jobs that are queued or running.
unsigned clinux_worker_pending(struct clinux_worker *worker);
/// 1 with a completion, 0 if there is none now, or -errno.
int clinux_worker_collect(struct clinux_worker *worker, int completions, struct clinux_completion *completion);
/// Never blocks. The thread still closes all descriptors that are queued; it releases no more memory.
void clinux_worker_release(struct clinux_worker *worker);

/// Stops the closing of descriptors in all workers, for execve(2): it would close those that wait on the calling thread. A
/// close that is under way continues.
void clinux_closing_hold(void);
/// Continues after clinux_closing_hold().
void clinux_closing_continue(void);
/// After clinux_closing_hold(): writes the descriptors that wait, or that are being closed, and returns their number, which can
/// exceed `capacity`.
size_t clinux_closing_waiting(int *descriptors, size_t capacity);
/// A worker in a call that no signal ends, so that neither execve(2) nor the end of the process completes before that call.
struct clinux_blocked_worker {
    int use;
    char owner[CLINUX_OWNER];
};
/// Returns the number of such workers, which can exceed `capacity`. Those that were released count too. A call that just takes
/// its time does not differ from one that waits for another program: ask again.
size_t clinux_workers_blocked(struct clinux_blocked_worker *found, size_t capacity);
/// Returns the number of workers that examine something now, of all owners, without a look at each worker.
size_t clinux_workers_examining(void);
