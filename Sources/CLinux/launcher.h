#pragma once

// A process that shares the memory of this one, has a descriptor table of its own, and creates processes.
//
// clone(2) copies the caller's descriptor table, and the child closes what it does not need. Both take time for each of the
// daemon's descriptors, and close(2) of a file waits for its file system, also in the child: a FUSE server that does not
// answer would hold up each launch. The table of the launcher has nothing but the descriptors of the current call, so a
// launch costs the same with any number of descriptors, and touches none that the child does not get.
//
// It is a process and no thread, because the processes that it creates are children of its own parent (CLONE_PARENT), the
// thread that has started it. A child that has asked for a signal at the end of its parent (PR_SET_PDEATHSIG(2const)) gets it when
// this thread ends. The first thread of a process is the only one that does not end at execve(2).
//
// The launcher has the thread-local variables of the thread that has started it. So it makes raw system calls only. Its
// credentials, resource limits, working directory and cgroup are those of this process at that time.

#include <stddef.h>

enum {
    /// The most descriptors of a call: SCM_MAX_FD of unix(7).
    LAUNCHER_CAPACITY = 253,
    /// What a call gets instead of a number that is not open. No descriptor has this number (fs.nr_open, proc(5)).
    LAUNCHER_NOT_OPEN = 1 << 30,
};

/// Called in the launcher, with raw system calls only (syscalls.h). `numbers` are those of its table, in the order of the call.
/// - `returned`: set to a descriptor that the caller gets, or left at -1.
typedef long launcher_function(void *argument, const int *numbers, int *returned);

/// Starts the launcher, unless it was started, and waits until it has its table. A call does so too, also if the launcher was
/// killed. Call it from the first thread.
void launcher_prepare(void);

/// Calls the function in the launcher and waits for its result.
/// - `numbers`: in the caller's table; a negative one stays as it is.
/// - `returned`: the descriptor that the function returned, close-on-exec, or -1.
/// Returns 0 with the `result`, or -errno: the function was not called.
int launcher_call(
    launcher_function *function, void *argument, const int *numbers, size_t count, long *result, int *returned);
