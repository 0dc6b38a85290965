#include "clinux_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

// The memory map of a process. Since Linux 6.11 the kernel searches it (PROCMAP_QUERY); before, its text is read.

enum { MOST_LINES = 20000 };

/// `struct procmap_query` of linux/fs.h, which Debian 12 does not have.
struct procmap_query {
    uint64_t size, query_flags, query_addr;
    uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
    uint32_t dev_major, dev_minor, vma_name_size, build_id_size;
    uint64_t vma_name_addr, build_id_addr;
};
#define PROCMAP_QUERY_CALL _IOWR('f', 17, struct procmap_query)
static const uint64_t vma_shared = 0x08;

static int kind(bool is_shared, uint64_t inode) {
    if (is_shared)
        return CLINUX_MAPPING_SHARED;
    return inode ? CLINUX_MAPPING_PRIVATE : CLINUX_MAPPING_ANONYMOUS;
}

static int search_text(FILE *text, unsigned long address) {
    char *line = NULL;
    size_t size = 0;
    int result = -E2BIG;
    for (int count = 0; count < MOST_LINES; count++) {
        unsigned long start, end, offset, inode;
        unsigned int major, minor;
        char permissions[5];
        if (getline(&line, &size, text) < 0) {
            result = CLINUX_MAPPING_NONE;
            break;
        }
        if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu", &start, &end, permissions, &offset, &major, &minor, &inode) != 7) {
            result = -EIO;
            break;
        }
        if (address < start || address >= end)
            continue;
        result = kind(permissions[3] == 's', inode);
        break;
    }
    free(line);
    return result;
}

int clinux_find_mapping(pid_t pid, unsigned long address) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -errno;
    struct procmap_query query = {.size = sizeof query, .query_addr = address};
    int result;
    if (ioctl(file, PROCMAP_QUERY_CALL, &query) == 0) {
        result = kind(query.vma_flags & vma_shared, query.inode);
    } else if (errno == ENOENT) {
        result = CLINUX_MAPPING_NONE;
    } else {
        FILE *text = fdopen(file, "re");
        if (text) {
            result = search_text(text, address);
            fclose(text);
            return result;
        }
        result = -errno;
    }
    close(file);
    return result;
}
