// What the test app does to other processes as their tracer.
#include "tracers.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int kill_at(const char *when, long number, pid_t pid, const char *attached) {
    int status, is_in_call = 0;
    if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESYSGOOD) || ptrace(PTRACE_INTERRUPT, pid, 0, 0)) return 91;
    if (waitpid(pid, &status, __WALL) != pid || ptrace(PTRACE_SYSCALL, pid, 0, 0)) return 90;
    close(open(attached, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    for (;;) {
        if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status)) return 89;
        int signal = 0;
        if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
            struct __ptrace_syscall_info info;
            if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) <= 0) return 88;
            if (info.op == PTRACE_SYSCALL_INFO_ENTRY) is_in_call = (long)info.entry.nr == number;
            if (is_in_call && (info.op == PTRACE_SYSCALL_INFO_EXIT || !strcmp(when, "entry"))) break;
        } else if (status >> 16 == 0) {
            signal = WSTOPSIG(status);
        }
        if (ptrace(PTRACE_SYSCALL, pid, 0, signal)) return 87;
    }
    kill(pid, SIGKILL);
    while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status)) {}
    return 0;
}

int hold_end(pid_t pid, const char *attached, const char *release) {
    int status;
    if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXIT)) return 91;
    close(open(attached, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status)) {
        if (status >> 16 == PTRACE_EVENT_EXIT) while (access(release, F_OK)) poll(NULL, 0, 5);
        int is_group_stop = status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) != SIGTRAP;
        int signal = status >> 16 == 0 ? WSTOPSIG(status) : 0;
        if (ptrace(is_group_stop ? PTRACE_LISTEN : PTRACE_CONT, pid, 0, signal)) return 90;
    }
    return 0;
}
