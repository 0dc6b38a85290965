#pragma once

#include <stdint.h>

/// Finds the private pages without a file that processes have in memory. `file` is a file in memory with the process IDs; what is found
/// (clinux_pages.h) replaces them. 0, -E2BIG if there are too many pages, or -errno.
int pages_record(int file);

/// Asks the kernel to read pages from swap: those that `file` has, until a time of CLOCK_MONOTONIC in µs. 0 or -errno.
int pages_bring_back(int file, uint64_t until);
