#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/// Writes `bytes` to memory.reclaim of a group, `folder`. 0 or -errno; that less was reclaimed (EAGAIN) is no error.
int reclaim_group(int folder, uint64_t bytes);

/// Pushes pages of a process out to swap (process_madvise(2), MADV_PAGEOUT): at most `bytes` of what it has in memory of its private
/// mappings without a file, from address `*next` on. Afterwards `*next` is where to continue, or 0 if nothing is left. 0 or -errno.
int reclaim_process(int pidfd, int pid, uint64_t bytes, uint64_t *next);

/// Reads /proc/PID/maps up to the next private mapping that can be written and has no file. Returns whether there is one.
bool next_private_range(FILE *maps, uint64_t *start, uint64_t *end);
