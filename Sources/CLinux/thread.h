#pragma once

/// Starts a detached thread with a stack of 64K. It blocks all signals, except for those with which libc changes the user of all
/// threads: signals are for the thread of the loop. Returns 0 or -errno.
int thread_start(void *(*run)(void *), void *argument);
