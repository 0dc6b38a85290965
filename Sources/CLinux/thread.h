#pragma once

#include <stdbool.h>

/// Starts a detached thread with a stack of 64K. It blocks all signals, except for those with which libc changes the user of all
/// threads: signals are for the thread of the loop. Returns 0 or -errno.
int thread_start(void *(*run)(void *), void *argument);

/// Runs a function on such a thread, on an idle one if there is one: at most 4 wait for 5 s each for the next function. To
/// create a thread costs more than most jobs. The function must leave the thread as it was.
int thread_reuse(void *(*run)(void *), void *argument);
