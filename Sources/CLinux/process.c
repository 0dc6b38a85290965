#include "clinux_process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int clinux_pidfd_open(pid_t pid) {
    long descriptor = syscall(SYS_pidfd_open, pid, 0); // close-on-exec by definition
    return descriptor < 0 ? -errno : (int)descriptor;
}

int clinux_pidfd_open_thread(pid_t thread) {
    // PIDFD_THREAD of linux/pidfd.h.
    long descriptor = syscall(SYS_pidfd_open, thread, O_EXCL);
    return descriptor < 0 ? -errno : (int)descriptor;
}

int clinux_pidfd_signal(int pidfd, int signal) {
    return syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) < 0 ? -errno : 0;
}

int clinux_wait(int type, int id, int options, struct clinux_wait_result *result) {
    siginfo_t info;
    struct rusage usage;
    memset(&info, 0, sizeof info);
    memset(&usage, 0, sizeof usage);
    memset(result, 0, sizeof *result);
    // The system call: libc's waitid has no rusage.
    if (syscall(SYS_waitid, type, id, &info, options | WNOHANG, &usage) < 0)
        return -errno;
    if (info.si_pid == 0)
        return 0;
    result->pid = info.si_pid;
    result->code = info.si_code;
    result->status = info.si_status;
    result->cpu_microseconds = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
                               (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    result->max_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
    return 0;
}

// From linux/pidfd.h since Linux 6.13; older headers lack it.
struct clinux_pidfd_info {
    uint64_t mask;
    uint64_t cgroup;
    uint32_t ids[11];
    int32_t exit_code;
};
#define CLINUX_PIDFD_INFO_EXIT (UINT64_C(1) << 3)
#define CLINUX_PIDFD_GET_INFO _IOWR(0xff, 11, struct clinux_pidfd_info)

int clinux_pidfd_exit(int pidfd, int *status) {
    struct clinux_pidfd_info info;
    memset(&info, 0, sizeof info);
    info.mask = CLINUX_PIDFD_INFO_EXIT;
    if (ioctl(pidfd, CLINUX_PIDFD_GET_INFO, &info) < 0) {
        // Kernels without the call, and processes whose information is no longer available.
        if (errno == ENOTTY || errno == EINVAL || errno == ESRCH)
            return 0;
        return -errno;
    }
    if (!(info.mask & CLINUX_PIDFD_INFO_EXIT))
        return 0;
    *status = info.exit_code;
    return 1;
}

int clinux_set_child_subreaper(bool on) { return prctl(PR_SET_CHILD_SUBREAPER, on, 0, 0, 0) < 0 ? -errno : 0; }

int clinux_set_idle(pid_t thread, bool idle) {
    struct sched_param parameters = {0};
    int policy = sched_getscheduler(thread);
    // A thread with a real-time, batch or deadline policy keeps it.
    if (policy == SCHED_OTHER || policy == SCHED_IDLE)
        if (sched_setscheduler(thread, idle ? SCHED_IDLE : SCHED_OTHER, &parameters) < 0)
            return -errno;
    int priority = idle ? IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0) : IOPRIO_PRIO_VALUE(IOPRIO_CLASS_NONE, 0);
    return syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, thread, priority) < 0 ? -errno : 0;
}

long clinux_sigtimedwait_number(void) { return SYS_rt_sigtimedwait; }

int clinux_read_signal_set(pid_t pid, unsigned long address, uint64_t *set) {
    return clinux_read_memory(pid, address, set, sizeof *set);
}

int clinux_usable_processors(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) < 0)
        return -errno;
    return CPU_COUNT(&set);
}

void clinux_trim_heap(void) { malloc_trim(0); }

void clinux_bound_heap_end(size_t bytes) { mallopt(M_TRIM_THRESHOLD, (int)bytes); }
