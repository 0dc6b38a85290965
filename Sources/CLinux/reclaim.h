#pragma once

#include <stdint.h>

/// Writes `bytes` to memory.reclaim of a group, `folder`. 0 or -errno; that less was reclaimed (EAGAIN) is no error.
int reclaim_group(int folder, uint64_t bytes);

/// Pushes pages of a process out to swap (process_madvise(2), MADV_PAGEOUT): at most `bytes` of its private memory without a file,
/// from address `*next` on. Afterwards `*next` is where to continue, or 0 if nothing is left. 0 or -errno.
int reclaim_process(int pidfd, int pid, uint64_t bytes, uint64_t *next);
