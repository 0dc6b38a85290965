#pragma once
#include <sys/types.h>

/// Kills another process with SIGKILL at the next system call `number` of its first thread: before the kernel carries the
/// call out (`when` is "entry"), or after (`when` is "exit"). Creates the file `attached` once it watches the process.
int kill_at(const char *when, long number, pid_t pid, const char *attached);

/// Holds up the end of another process, with all its memory, until the file `release` exists. Creates the file `attached` once it
/// watches the process.
int hold_end(pid_t pid, const char *attached, const char *release);
