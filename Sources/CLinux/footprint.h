#pragma once

#include "clinux_worker.h"

#include <stdbool.h>
#include <sys/types.h>

enum {
    FOOTPRINT_FILES = 256, // of one app that are remembered
    FOOTPRINT_DEVICES = 64,
};

struct footprint_file {
    dev_t device;
    uint64_t inode, bytes;
};

/// What is known of one app while its processes are measured one after the other.
struct footprint {
    uint64_t token; // of the app
    unsigned files_count, devices_count;
    struct footprint_file files[FOOTPRINT_FILES];
    dev_t devices[FOOTPRINT_DEVICES]; // file systems in memory; the first one is the kernel's own
};

/// Begins with an app. Nothing changes if it is the same one.
void footprint_begin(struct footprint *footprint, uint64_t token);
/// These are the jobs of clinux_worker.h. 0 or -errno.
int footprint_measure(struct footprint *footprint, int process, struct clinux_completion *done);
int footprint_find_files(struct footprint *footprint, int process, struct clinux_completion *done);
int footprint_find_mapped(struct footprint *footprint, int process, struct clinux_completion *done);
