#pragma once

#include <stdint.h>

/// CLINUX_JOB_READ_FILES of clinux_worker.h. 0 or -errno. It can block in a way that no signal ends.
int read_files(int list, int output, uint64_t *count);
/// CLINUX_JOB_WATCH_FILE of clinux_worker.h. 0 or -errno. It can block in a way that no signal ends.
int watch_file(int inotify, int before, int file);
