// Starts a process without blocking.
//
// vfork and posix_spawn block the caller until the program is executed; a program on a hung mount would block the whole
// daemon. Here the child runs concurrently, on a stack of its own, and reports through a pipe: bytes are a failure, end of
// file is an exec (close-on-exec) or the end of the child.
//
// The child normally shares the parent's memory (CLONE_VM), so that the cost does not depend on the parent's size. In two
// cases it gets a copy instead, as with fork:
//   - other credentials. A task of another user would share the memory of a privileged daemon for as long as it likes
//     (its program may be on a FUSE mount of that user), and commit_creds() would make the daemon undumpable.
//   - another oom_score_adj. The kernel keeps it equal among all processes that share memory, except for vfork's child:
//     setting the child's would change the daemon's (__set_oom_adj() in fs/proc/base.c).
// The block of arguments is a shared mapping in both cases, so that both kinds of children report in the same way.
//
// The child is created by a process with a descriptor table of its own, and so gets a copy of that table (launcher.h). Its parent is
// this process nevertheless.

#include "clinux_process.h"
#include "clinux_spawn.h"
#include "launcher.h"
#include "program.h"
#include "spawn_block.h"
#include "spawn_numbers.h"
#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    // The child runs a few small functions with all signals blocked: no handler frames, no libc.
    STACK_SIZE = 16 * 1024,
    GUARD_SIZE = 64 * 1024, // one page of any size (4, 16 or 64 KiB)
    FIRST_PASSED = 3,
};

// MARK: The child

CHILD __attribute__((noreturn)) void fail(struct block *block, int stage, long error, size_t index) {
    struct clinux_spawn_report report = {stage, (int32_t)-error, (int32_t)index, 0};
    if (stage == CLINUX_STAGE_EXECUTABLE && error == -ENOENT) {
        // execve returns ENOENT for a missing file and for a missing interpreter. The child checks which, since the
        // daemon must not: the file may be on a mount that hangs.
        long file = raw4(SYS_openat, AT_FDCWD, block->executable, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
        if (file != -ENOENT)
            report.interpreter_missing = 1;
        if (file >= 0)
            raw3(SYS_read, file, block->first_bytes, FIRST_BYTES - 1);
    }
    raw3(SYS_write, block->report, &report, sizeof report);
    for (;;)
        raw1(SYS_exit_group, exit_status(stage));
}

/// Resets ignored signals, and ignores SIGPIPE if that is wanted; CLONE_CLEAR_SIGHAND has reset the handlers. All signals stay
/// blocked until exec.
CHILD void reset_signals(bool ignore_sigpipe) {
    // The kernel's struct sigaction, which is not libc's; zeroes mean SIG_DFL, no flags, no mask.
    volatile unsigned long action[4] = {0, 0, 0, 0};
    for (int signal = 1; signal <= 64; signal++)
        if (signal != SIGKILL && signal != SIGSTOP)
            raw4(SYS_rt_sigaction, signal, action, 0, 8);
    action[0] = 1; // SIG_IGN
    if (ignore_sigpipe)
        raw4(SYS_rt_sigaction, SIGPIPE, action, 0, 8);
}

CHILD void join_cgroup(struct block *block) {
    long file = raw4(SYS_openat, block->cgroup, "cgroup.procs", O_WRONLY | O_CLOEXEC, 0);
    if (file < 0)
        fail(block, CLINUX_STAGE_CGROUP, file, 0);
    long written = raw3(SYS_write, file, "0", 1);
    if (written < 0)
        fail(block, CLINUX_STAGE_CGROUP, written, 0);
    raw1(SYS_close, file);
}

CHILD void set_oom_score_adjust(struct block *block) {
    char digits[PID_DIGITS * 2];
    size_t length = write_number(digits, block->oom_score_adjust);
    long file = raw4(SYS_openat, AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC, 0);
    if (file < 0)
        fail(block, CLINUX_STAGE_OOM_SCORE_ADJUST, file, 0);
    long written = raw3(SYS_write, file, digits, length);
    if (written < 0)
        fail(block, CLINUX_STAGE_OOM_SCORE_ADJUST, written, 0);
    raw1(SYS_close, file);
}

/// Numbers the descriptors: 0, 1, 2, the passed ones from 3, then the report pipe. All others are closed at once, not only at
/// exec: an exec that hangs must not keep other apps' sockets open.
CHILD void arrange_descriptors(struct block *block) {
    // First move them beyond all target numbers.
    int base = FIRST_PASSED + (int)block->passed_count + 1;
    long report = raw3(SYS_fcntl, block->report, F_DUPFD_CLOEXEC, base);
    if (report < 0)
        fail(block, CLINUX_STAGE_DESCRIPTORS, report, 0);
    block->report = (int)report;
    for (int i = 0; i < 3; i++) {
        int stage = CLINUX_STAGE_STANDARD_INPUT + i;
        long source = block->standard[i];
        if (i == 2 && block->error_is_output)
            source = block->standard[1];
        else if (block->standard_path[i])
            source = raw4(SYS_openat, AT_FDCWD, block->standard_path[i],
                          O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | block->standard_flags[i], 0666);
        else if (source < 0)
            source = raw4(SYS_openat, AT_FDCWD, "/dev/null", (i == 0 ? O_RDONLY : O_WRONLY) | O_CLOEXEC | O_NOCTTY, 0);
        if (source < 0)
            fail(block, stage, source, 0);
        long moved = raw3(SYS_fcntl, source, F_DUPFD_CLOEXEC, base);
        if (moved < 0)
            fail(block, stage, moved, 0);
        block->standard[i] = (int)moved;
    }
    for (size_t i = 0; i < block->passed_count; i++) {
        long moved = raw3(SYS_fcntl, block->passed[i], F_DUPFD_CLOEXEC, base);
        if (moved < 0)
            fail(block, CLINUX_STAGE_DESCRIPTORS, moved, i);
        block->passed[i] = (int)moved;
    }
    for (int i = 0; i < 3; i++) {
        long placed = raw3(SYS_dup3, block->standard[i], i, 0);
        if (placed < 0)
            fail(block, CLINUX_STAGE_STANDARD_INPUT + i, placed, 0);
    }
    for (size_t i = 0; i < block->passed_count; i++) {
        long placed = raw3(SYS_dup3, block->passed[i], FIRST_PASSED + i, 0);
        if (placed < 0)
            fail(block, CLINUX_STAGE_DESCRIPTORS, placed, i);
    }
    long placed = raw3(SYS_dup3, block->report, base - 1, O_CLOEXEC);
    if (placed < 0)
        fail(block, CLINUX_STAGE_DESCRIPTORS, placed, 0);
    block->report = base - 1;
    long closed = raw3(SYS_close_range, base, ~0U, 0);
    if (closed < 0)
        fail(block, CLINUX_STAGE_DESCRIPTORS, closed, 0);
}

/// - Returns: the descriptor to execute, so that it is the file whose digest was compared; negative: the path is executed.
CHILD long check_digest(struct block *block) {
    int stage;
    long file = program_check(block->executable, block->digest_kind, block->digest, &stage);
    if (file < 0)
        fail(block, stage, file, 0);
    if (program_is_elf((int)file))
        return file;
    raw1(SYS_close, file);
    return -1;
}

CHILD void set_limits(struct block *block) {
    for (size_t i = 0; i < block->limit_count; i++) {
        uint64_t values[2] = {block->limits[i].soft, block->limits[i].hard};
        long result = raw4(SYS_prlimit64, 0, block->limits[i].resource, values, 0);
        if (result < 0)
            fail(block, CLINUX_STAGE_LIMITS, result, i);
    }
}

/// With raw system calls: libc's functions would change the user of every thread of the daemon.
CHILD void change_credentials(struct block *block) {
    long result = raw2(SYS_setgroups, block->group_count, block->groups);
    if (result < 0)
        fail(block, CLINUX_STAGE_GROUPS, result, 0);
    result = raw3(SYS_setresgid, block->gid, block->gid, block->gid);
    if (result < 0)
        fail(block, CLINUX_STAGE_GROUP, result, 0);
    result = raw3(SYS_setresuid, block->uid, block->uid, block->uid);
    if (result < 0)
        fail(block, CLINUX_STAGE_USER, result, 0);
}

CHILD __attribute__((noreturn)) void child(void *argument) {
    struct block *block = argument;
    reset_signals(block->ignore_sigpipe);
    long result = raw0(SYS_setsid);
    if (result < 0)
        fail(block, CLINUX_STAGE_SESSION, result, 0);
    raw1(SYS_umask, block->umask);
    if (block->join_cgroup)
        join_cgroup(block);
    if (block->set_oom_score_adjust)
        set_oom_score_adjust(block);
    arrange_descriptors(block);
    // As the user of the daemon, who may mount, and may read what its apps may only execute.
    if (block->read_only_program) {
        result = program_protect(block->read_only_program, !block->working_directory);
        if (result < 0)
            fail(block, CLINUX_STAGE_READ_ONLY_PROGRAM, result, 0);
    }
    long program = block->digest_kind == CLINUX_DIGEST_NONE ? -1 : check_digest(block);
    set_limits(block);
    if (block->change_credentials)
        change_credentials(block);
    if (block->working_directory) {
        result = raw1(SYS_chdir, block->working_directory);
        if (result < 0)
            fail(block, CLINUX_STAGE_WORKING_DIRECTORY, result, 0);
    }
    if (block->no_new_privileges) {
        result = raw5(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (result < 0)
            fail(block, CLINUX_STAGE_NO_NEW_PRIVILEGES, result, 0);
    }
    long pid = raw0(SYS_getpid);
    for (size_t i = 0; i < block->pid_value_count; i++)
        write_number(block->pid_values[i], pid);
    uint64_t none = 0;
    result = raw4(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, sizeof none);
    if (result < 0)
        fail(block, CLINUX_STAGE_SIGNALS, result, 0);
    atomic_store_explicit(&block->reached_exec, true, memory_order_release);
    if (program >= 0)
        result = raw5(SYS_execveat, program, "", block->arguments, block->environment, AT_EMPTY_PATH);
    else
        result = raw3(SYS_execve, block->executable, block->arguments, block->environment);
    fail(block, CLINUX_STAGE_EXECUTABLE, result, 0);
}

// MARK: The parent

struct arena {
    uint8_t *next;
    uint8_t *end;
};

/// Allocates from the block, whose size was computed with the same alignment; running out is a bug.
static void *take(struct arena *arena, size_t size) {
    size = (size + 15) & ~(size_t)15;
    if ((size_t)(arena->end - arena->next) < size)
        __builtin_trap();
    void *allocated = arena->next;
    arena->next += size;
    return allocated;
}

static size_t rounded(size_t size) { return (size + 15) & ~(size_t)15; }

/// A NULL-terminated array of pointers to copies of `strings`, with space for `more` pointers.
static char **copy_strings(struct arena *arena, const struct clinux_strings *strings, size_t more) {
    char **pointers = take(arena, (strings->count + more + 1) * sizeof(char *));
    char *bytes = take(arena, strings->length);
    if (strings->length > 0)
        memcpy(bytes, strings->bytes, strings->length);
    for (size_t i = 0; i < strings->count; i++) {
        pointers[i] = bytes;
        bytes += strlen(bytes) + 1;
    }
    return pointers; // terminated, since the mapping is zeroed
}

static size_t block_size(const struct clinux_spawn_request *r) {
    size_t size = rounded(sizeof(struct block)) + rounded(strlen(r->executable) + 1);
    size += rounded((r->arguments.count + 1) * sizeof(char *)) + rounded(r->arguments.length);
    size += rounded((r->environment.count + r->pid_variables.count + 1) * sizeof(char *));
    size += rounded(r->environment.length);
    size += rounded(r->pid_variables.count * sizeof(char *));
    size += rounded(r->pid_variables.length + r->pid_variables.count * (PID_DIGITS + 1));
    if (r->working_directory)
        size += rounded(strlen(r->working_directory) + 1);
    if (r->read_only_program)
        size += rounded(strlen(r->read_only_program) + 1);
    for (int i = 0; i < 3; i++)
        if (r->standard_path[i])
            size += rounded(strlen(r->standard_path[i]) + 1);
    size += rounded(r->group_count * sizeof(gid_t));
    size += rounded(r->limit_count * sizeof(struct clinux_limit));
    return size + rounded(r->passed_count * sizeof(int));
}

static void *copy(struct arena *arena, const void *source, size_t size) {
    void *target = take(arena, size);
    if (size > 0)
        memcpy(target, source, size);
    return target;
}

/// Appends NAME= with space for the digits, which the child writes.
static void add_pid_variables(struct block *block, struct arena *arena, const struct clinux_spawn_request *r) {
    char **slots = block->environment + r->environment.count;
    block->pid_values = take(arena, r->pid_variables.count * sizeof(char *));
    block->pid_value_count = r->pid_variables.count;
    char *text = take(arena, r->pid_variables.length + r->pid_variables.count * (PID_DIGITS + 1));
    const char *name = (const char *)r->pid_variables.bytes;
    for (size_t i = 0; i < r->pid_variables.count; i++) {
        size_t length = strlen(name);
        slots[i] = text;
        memcpy(text, name, length);
        text[length] = '=';
        block->pid_values[i] = text + length + 1;
        text += length + 1 + PID_DIGITS + 1;
        name += length + 1;
    }
}

static struct block *fill(struct arena arena, const struct clinux_spawn_request *r, int report) {
    struct block *block = take(&arena, sizeof *block);
    block->report = report;
    block->executable = copy(&arena, r->executable, strlen(r->executable) + 1);
    block->arguments = copy_strings(&arena, &r->arguments, 0);
    block->environment = copy_strings(&arena, &r->environment, r->pid_variables.count);
    add_pid_variables(block, &arena, r);
    if (r->working_directory)
        block->working_directory = copy(&arena, r->working_directory, strlen(r->working_directory) + 1);
    block->change_credentials = r->change_credentials;
    block->uid = r->uid;
    block->gid = r->gid;
    block->groups = copy(&arena, r->groups, r->group_count * sizeof(gid_t));
    block->group_count = r->group_count;
    block->umask = r->umask;
    block->limits = copy(&arena, r->limits, r->limit_count * sizeof(struct clinux_limit));
    block->limit_count = r->limit_count;
    block->set_oom_score_adjust = r->set_oom_score_adjust;
    block->oom_score_adjust = r->oom_score_adjust;
    block->no_new_privileges = r->no_new_privileges;
    block->ignore_sigpipe = r->ignore_sigpipe;
    if (r->read_only_program)
        block->read_only_program = copy(&arena, r->read_only_program, strlen(r->read_only_program) + 1);
    block->digest_kind = r->digest_kind;
    if (r->digest_kind != CLINUX_DIGEST_NONE)
        memcpy(block->digest, r->digest, sizeof block->digest);
    block->cgroup = r->cgroup;
    memcpy(block->standard, r->standard, sizeof block->standard);
    memcpy(block->standard_flags, r->standard_flags, sizeof block->standard_flags);
    block->error_is_output = r->error_is_output;
    for (int i = 0; i < 3; i++)
        if (r->standard_path[i])
            block->standard_path[i] = copy(&arena, r->standard_path[i], strlen(r->standard_path[i]) + 1);
    block->passed = copy(&arena, r->passed, r->passed_count * sizeof(int));
    block->passed_count = r->passed_count;
    return block;
}

/// Ignores errors: the child does the same and reports them.
CHILD void move_into_cgroup(int cgroup, long pid) {
    long file = raw4(SYS_openat, cgroup, "cgroup.procs", O_WRONLY | O_CLOEXEC, 0);
    if (file < 0)
        return;
    char digits[PID_DIGITS * 2];
    raw3(SYS_write, file, digits, write_number(digits, pid));
    raw1(SYS_close, file);
}

/// Calls clone3, or clone if a sandbox forbids clone3 (container runtimes return ENOSYS or EPERM). After clone the child
/// joins its cgroup itself, before anything else.
/// - `parent`: CLONE_PARENT, or 0. All signals are blocked.
CHILD long create_child(struct block *block, uint8_t *stack, bool copy_memory, uint64_t parent, int *pidfd) {
    uint64_t common = (copy_memory ? 0 : CLONE_VM) | CLONE_PIDFD | parent;
    // With CLONE_PARENT it is that of the caller.
    uint64_t exit_signal = parent ? 0 : SIGCHLD;
    struct clone_args args = {
        .flags = common | CLONE_CLEAR_SIGHAND | (block->cgroup >= 0 ? CLONE_INTO_CGROUP : 0),
        .pidfd = (uintptr_t)pidfd,
        .exit_signal = exit_signal,
        .stack = (uintptr_t)stack,
        .stack_size = STACK_SIZE,
        .cgroup = block->cgroup >= 0 ? (uint64_t)block->cgroup : 0,
    };
    long pid = raw_clone(SYS_clone3, (long)&args, sizeof args, 0, child, block);
    if (pid != -ENOSYS && pid != -EPERM)
        return pid;
    block->join_cgroup = block->cgroup >= 0;
    long flags = (long)(common | exit_signal);
    pid = raw_clone(SYS_clone, flags, (long)(stack + STACK_SIZE), (long)pidfd, child, block);
    // The parent moves the child too, so that it is in the group when this function returns: the group may be frozen or
    // killed from then on.
    if (pid > 0 && block->join_cgroup)
        move_into_cgroup(block->cgroup, pid);
    return pid;
}

/// No signal may be handled in the child while it shares memory, not even libc's internal ones, which sigprocmask does
/// not block.
static long create_with_blocked_signals(struct block *block, uint8_t *stack, bool copy_memory, int *pidfd) {
    uint64_t all = ~(uint64_t)0, before = 0;
    raw4(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    long pid = create_child(block, stack, copy_memory, 0, pidfd);
    raw4(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, sizeof before);
    return pid;
}

struct creation {
    struct block *block;
    uint8_t *stack;
    bool copy_memory;
};

/// In the launcher, where all signals are blocked. The child is a child of this process (CLONE_PARENT).
CHILD long create_from_launcher(void *argument, const int *numbers, int *returned) {
    struct creation *creation = argument;
    struct block *block = creation->block;
    block->report = numbers[0];
    block->cgroup = numbers[1];
    for (int i = 0; i < 3; i++)
        block->standard[i] = numbers[2 + i];
    for (size_t i = 0; i < block->passed_count; i++)
        block->passed[i] = numbers[5 + i];
    int pidfd = -1;
    long pid = create_child(block, creation->stack, creation->copy_memory, CLONE_PARENT, &pidfd);
    // The kernel also writes the number of a pidfd that it closes again because the child cannot be created.
    *returned = pid > 0 ? pidfd : -1;
    return pid;
}

/// Creates the child from the launcher; from this process if that is impossible: then the child gets a copy of the whole
/// descriptor table.
static long start_child(struct block *block, uint8_t *stack, bool copy_memory, int *pidfd) {
    int numbers[LAUNCHER_CAPACITY];
    size_t count = 5 + block->passed_count;
    if (count <= LAUNCHER_CAPACITY) {
        numbers[0] = block->report;
        numbers[1] = block->cgroup;
        memcpy(numbers + 2, block->standard, sizeof block->standard);
        if (block->passed_count > 0)
            memcpy(numbers + 5, block->passed, block->passed_count * sizeof(int));
        struct creation creation = {block, stack, copy_memory};
        long pid;
        if (launcher_call(create_from_launcher, &creation, numbers, count, &pid, pidfd) == 0)
            return pid;
    }
    return create_with_blocked_signals(block, stack, copy_memory, pidfd);
}

int clinux_spawn(const struct clinux_spawn_request *request, struct clinux_spawn_start *start) {
    size_t size = GUARD_SIZE + STACK_SIZE + block_size(request);
    uint8_t *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -errno;
    int error = 0;
    int ends[2];
    if (mprotect(memory, GUARD_SIZE, PROT_NONE) < 0 || pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
        error = -errno;
        munmap(memory, size);
        return error;
    }
    uint8_t *stack = memory + GUARD_SIZE;
    struct block *block = fill((struct arena){stack + STACK_SIZE, memory + size}, request, ends[1]);
    int pidfd = -1;
    long pid = start_child(block, stack, request->copy_memory, &pidfd);
    close(ends[1]);
    // The kernel could not send the descriptor from the launcher. The child is not reaped yet, so its pid is its own.
    if (pid > 0 && pidfd < 0)
        pidfd = clinux_pidfd_open((pid_t)pid);
    if (pid > 0 && pidfd >= 0) {
        *start = (struct clinux_spawn_start){(pid_t)pid, pidfd, ends[0], memory, size};
        return 0;
    }
    close(ends[0]);
    if (pid > 0) {
        // Its memory stays mapped: it may be in a system call that SIGKILL does not end.
        kill((pid_t)pid, SIGKILL);
        return pidfd;
    }
    munmap(memory, size);
    return (int)pid;
}

void clinux_spawn_prepare(void) { launcher_prepare(); }

static const struct block *block_of(const void *memory) {
    return (const struct block *)((const uint8_t *)memory + GUARD_SIZE + STACK_SIZE);
}

bool clinux_spawn_reached_exec(const void *memory) {
    return atomic_load_explicit(&block_of(memory)->reached_exec, memory_order_acquire);
}

const char *clinux_spawn_first_bytes(const void *memory) { return block_of(memory)->first_bytes; }

const uint8_t *clinux_spawn_digest(const void *memory) { return block_of(memory)->digest; }

void clinux_spawn_release(void *memory, size_t memory_size) { munmap(memory, memory_size); }
