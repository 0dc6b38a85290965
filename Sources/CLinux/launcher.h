#pragma once

// A thread with a descriptor table of its own, from which processes are created.
//
// clone(2) copies the caller's descriptor table, and the child closes what it does not need. Both take time for each of the
// daemon's descriptors, and close(2) of a file waits for its file system, also in the child: a FUSE server that does not
// answer would hold up each launch. The table of this thread has nothing but the descriptors of the current call, so a
// launch costs the same with any number of descriptors, and touches none that the child does not get.

#include <stddef.h>

enum {
    /// The most descriptors of a call: SCM_MAX_FD of unix(7).
    LAUNCHER_CAPACITY = 253,
    /// What a call gets instead of a number that is not open. No descriptor has this number (fs.nr_open, proc(5)).
    LAUNCHER_NOT_OPEN = 1 << 30,
};

/// Called on the launcher's thread. `numbers` are those of its table, in the order of the call.
/// - `returned`: set to a descriptor that the caller gets, or left at -1.
typedef long launcher_function(void *argument, const int *numbers, int *returned);

/// Starts the thread, unless it was started, and waits until it has its table. A call does so too.
void launcher_prepare(void);

/// Calls the function on the launcher's thread and waits for its result.
/// - `numbers`: in the caller's table; a negative one stays as it is.
/// - `returned`: the descriptor that the function returned, close-on-exec, or -1.
/// Returns 0 with the `result`, or -errno: the function was not called.
int launcher_call(
    launcher_function *function, void *argument, const int *numbers, size_t count, long *result, int *returned);
