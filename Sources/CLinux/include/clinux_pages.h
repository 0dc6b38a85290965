#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Which pages of an app are in memory, in few bytes: pairs of numbers of 7 bits a byte (LEB128). A pair is how many pages lie between the
// range before and this one, and how many this one has. If it has none, its first number is a process, whose ranges follow.

enum {
    /// Pages with fewer others between them are one range. They are close in swap, too, where the kernel reads 8 at once (vm.page-cluster).
    CLINUX_PAGES_GAP = 4,
    /// The most bytes. What they have no space for is left out.
    CLINUX_PAGES_SIZE = 4096,
};

struct clinux_pages {
    uint64_t left;       // how many pages may be added
    uint64_t start, end; // the last range, which is not in `bytes` yet
    uint64_t written;    // the end of the range before
    size_t length;
    uint8_t bytes[CLINUX_PAGES_SIZE];
};

/// The pages that are added from now on are those of this process.
void clinux_pages_begin(struct clinux_pages *pages, int pid);

/// Adds the pages in memory among those that `count` entries of /proc/PID/pagemap describe, from page `first` on. 0, or -E2BIG if they are
/// too many.
int clinux_pages_add(struct clinux_pages *pages, uint64_t first, const uint64_t *entries, size_t count);

/// Adds the last range to `bytes`.
void clinux_pages_end(struct clinux_pages *pages);

/// Reads a pair, from `*next` on. Returns false at the end.
bool clinux_pages_next(const uint8_t **next, const uint8_t *end, uint64_t *first, uint64_t *second);
