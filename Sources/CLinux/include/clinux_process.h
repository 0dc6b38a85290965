#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// The result of waitid(2) for one child.
struct clinux_wait_result {
    pid_t pid; // 0: no child has changed
    int code;  // CLD_EXITED and so on
    int status;
    uint64_t cpu_microseconds; // user and system time, with the children that it waited for
    uint64_t max_rss_bytes;
};

int clinux_pidfd_open(pid_t pid);
/// A pidfd of a thread, whose pidfd_getfd(2) uses the descriptor table of that thread; -EINVAL before Linux 6.9, or -errno.
int clinux_pidfd_open_thread(pid_t thread);
int clinux_pidfd_signal(int pidfd, int signal);
/// waitid(2) that never blocks; 0 or -errno. `type` is P_ALL, P_PID or P_PIDFD, `options` lack WNOHANG.
int clinux_wait(int type, int id, int options, struct clinux_wait_result *result);
/// How the process of a pidfd ended, child or not, as wait(2) encodes it: 1 and `status`, 0 if it is not known (yet), or
/// -errno. It needs PIDFD_GET_INFO with PIDFD_INFO_EXIT (since Linux 6.15), and the process must have been reaped.
int clinux_pidfd_exit(int pidfd, int *status);

/// PR_SET_CHILD_SUBREAPER: orphaned descendants become children of this process instead of init's.
int clinux_set_child_subreaper(bool on);

/// How many processors this process may use (sched_getaffinity(2)), or -errno.
int clinux_usable_processors(void);

/// The number of the system call by which the C library implements sigwait(3), as in /proc/PID/syscall.
long clinux_sigtimedwait_number(void);

/// Reads the kernel's signal set at an address of a process: signal n is bit n-1. Returns as
/// `clinux_read_memory`.
int clinux_read_signal_set(pid_t pid, unsigned long address, uint64_t *set);

/// The most bytes that `clinux_read_memory` reads.
enum { CLINUX_LONGEST_READ = 32 };

/// Reads memory of a process (process_vm_readv(2)) on a thread of its own: a page may belong to a file system in user
/// space that
/// never answers. Returns 0, -EFAULT if less can be read, -ETIMEDOUT if there is no answer within 100 ms, -EBUSY if
/// earlier reads
/// were too slow and this one is not tried, or -errno. It may be called by several threads.
int clinux_read_memory(pid_t pid, unsigned long address, void *buffer, size_t size);

/// Writes memory of a process (process_vm_writev(2)), at most `CLINUX_LONGEST_READ` bytes. Returns as `clinux_read_memory`.
int clinux_write_memory(pid_t pid, unsigned long address, const void *buffer, size_t size);

/// The value of the line `se.exec_start` of /proc/PID/sched, in nanoseconds: when the thread was on a processor last, on the clock of
/// that processor. Negative: there is no such line.
int64_t clinux_execution_start(const char *text);

/// What is to be added to the clock on which the scheduler counts on a processor (`se.exec_start` in /proc/PID/sched) to have
/// CLOCK_MONOTONIC, in nanoseconds. Returns as `clinux_read_memory`, and -EINVAL for a processor that this process may not use.
int clinux_clock_offset(int processor, int64_t *offset);

/// What is mapped at an address of a process.
enum clinux_mapping { CLINUX_MAPPING_NONE, CLINUX_MAPPING_SHARED, CLINUX_MAPPING_PRIVATE, CLINUX_MAPPING_ANONYMOUS };

/// What is mapped at an address (/proc/PID/maps): shared memory, private memory of a file, or memory of this process alone: a stack, a heap.
/// Returns -errno if that cannot be read, and -E2BIG if the process has more mappings than are looked at.
int clinux_find_mapping(pid_t pid, unsigned long address);

/// Gives the free pages of this process's heap back to the kernel (malloc_trim(3)).
void clinux_trim_heap(void);

/// How many free bytes malloc(3) keeps at the end of the heap. By default that grows to twice the largest block that was freed
/// (mallopt(3), M_TRIM_THRESHOLD).
void clinux_bound_heap_end(size_t bytes);

/// sched_setscheduler(2) and ioprio_set(2) of one thread: idle, or the default class.
int clinux_set_idle(pid_t thread, bool idle);

