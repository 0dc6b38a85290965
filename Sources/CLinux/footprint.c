// Measures the memory of processes exactly, on the worker's thread. The kernel walks the page tables for it.
#include "footprint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum {
    BUFFER_SIZE = 16 * 1024,
    MOST_DESCRIPTORS = 4096, // of one process that are looked at
};
/// Smaller files and mappings do not change a decision.
static const uint64_t RELEVANT = 1 << 20;

/// Reads a file by lines. A line that is longer than the buffer is cut.
struct lines {
    int descriptor;
    size_t start, end;
    char buffer[BUFFER_SIZE];
};

/// Opens a file below `folder`; 0 or -errno.
static int begin(struct lines *lines, int folder, const char *name) {
    lines->descriptor = openat(folder, name, O_RDONLY | O_CLOEXEC);
    lines->start = lines->end = 0;
    return lines->descriptor < 0 ? -errno : 0;
}

/// The next line without its line feed; NULL at the end.
static char *next_line(struct lines *lines) {
    for (;;) {
        char *line = lines->buffer + lines->start;
        char *feed = memchr(line, '\n', lines->end - lines->start);
        if (feed) {
            *feed = 0;
            lines->start += (size_t)(feed - line) + 1;
            return line;
        }
        if (lines->start == 0 && lines->end == BUFFER_SIZE - 1) {
            lines->buffer[lines->end] = 0;
            lines->start = lines->end;
            return line;
        }
        memmove(lines->buffer, line, lines->end - lines->start);
        lines->end -= lines->start;
        lines->start = 0;
        ssize_t part = read(lines->descriptor, lines->buffer + lines->end, BUFFER_SIZE - 1 - lines->end);
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0)
            return NULL;
        lines->end += (size_t)part;
    }
}

static void finish(struct lines *lines) { close(lines->descriptor); }

/// The number of kilobytes in a line, if the line has this name, in bytes; 0 for another line.
static uint64_t value(const char *line, const char *name) {
    size_t length = strlen(name);
    return strncmp(line, name, length) == 0 ? strtoull(line + length, NULL, 10) * 1024 : 0;
}

// --- Which files survive the processes ----------------------------------------

static bool add_device(struct footprint *footprint, dev_t device) {
    if (footprint->devices_count == FOOTPRINT_DEVICES)
        return false;
    footprint->devices[footprint->devices_count++] = device;
    return true;
}

/// Finds out which devices are file systems in memory: the kernel's own for memfds and System V segments, and each tmpfs that
/// is mounted here. One that is mounted only in a namespace of the app ends with it.
static void find_devices(struct footprint *footprint, struct lines *lines) {
    if (footprint->devices_count > 0)
        return;
    struct stat about;
    int file = memfd_create("devices", MFD_CLOEXEC);
    // The first one. Its files have no name, so it is 0 if it cannot be found out.
    add_device(footprint, file >= 0 && fstat(file, &about) == 0 ? about.st_dev : 0);
    if (file >= 0)
        close(file);
    if (begin(lines, AT_FDCWD, "/proc/self/mountinfo") < 0)
        return;
    for (char *line; (line = next_line(lines));) {
        unsigned major, minor;
        const char *type = strstr(line, " - tmpfs ");
        if (type && sscanf(line, "%*d %*d %u:%u", &major, &minor) == 2 &&
            !add_device(footprint, makedev(major, minor)))
            break;
    }
    finish(lines);
}

static bool is_in_memory(const struct footprint *footprint, dev_t device) {
    for (unsigned i = 0; i < footprint->devices_count; i++)
        if (footprint->devices[i] == device)
            return true;
    return false;
}

static bool is_deleted(const char *path) {
    static const char suffix[] = " (deleted)";
    size_t length = strlen(path);
    return length >= sizeof suffix - 1 && strcmp(path + length - (sizeof suffix - 1), suffix) == 0;
}

/// The first line of a mapping in maps and smaps (proc_pid_maps(5)).
struct mapping {
    dev_t device;
    uint64_t inode;
    const char *path;
};

/// Whether this is such a line.
static bool parse(const char *line, struct mapping *mapping) {
    unsigned major, minor;
    unsigned long long inode;
    int length = 0;
    if (sscanf(line, "%*x-%*x %*s %*x %x:%x %llu %n", &major, &minor, &inode, &length) != 3 || length == 0)
        return false;
    *mapping = (struct mapping){.device = makedev(major, minor), .inode = inode, .path = line + length};
    return true;
}

/// Whether a mapped file is shared memory that outlives the processes: it has a name in a tmpfs, or is a System V segment that
/// is not marked for removal (shmctl(2)). The kernel shows the ID of a segment as its inode.
static bool survives(const struct footprint *footprint, const struct mapping *mapping) {
    if (mapping->inode == 0 || !is_in_memory(footprint, mapping->device))
        return false;
    if (mapping->device == footprint->devices[0]) {
        struct shmid_ds about;
        return strncmp(mapping->path, "/SYSV", 5) == 0 && shmctl((int)mapping->inode, IPC_STAT, &about) == 0 &&
               !(about.shm_perm.mode & SHM_DEST);
    }
    return !is_deleted(mapping->path);
}

/// Adds up the process's share of shared memory that survives it.
static void find_surviving(struct footprint *footprint, int process, uint64_t *resident, uint64_t *swapped) {
    struct lines lines;
    struct mapping mapping;
    bool counts = false;
    find_devices(footprint, &lines);
    if (begin(&lines, process, "smaps") < 0)
        return;
    for (char *line; (line = next_line(&lines));) {
        // Names of values begin with a capital letter, addresses never.
        if (line[0] < 'A' || line[0] > 'Z')
            counts = parse(line, &mapping) && survives(footprint, &mapping);
        else if (counts) {
            *resident += value(line, "Pss:");
            *swapped += value(line, "SwapPss:");
        }
    }
    finish(&lines);
}

static uint64_t difference(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

// --- The jobs ------------------------------------------------------------------

int footprint_measure(struct footprint *footprint, int process, struct clinux_completion *done) {
    struct lines lines;
    int error = begin(&lines, process, "smaps_rollup");
    if (error < 0)
        return error;
    uint64_t own = 0, swapped = 0, surviving = 0, surviving_swapped = 0;
    for (char *line; (line = next_line(&lines));) {
        own += value(line, "Pss_Anon:");
        swapped += value(line, "SwapPss:");
        done->shared += value(line, "Pss_Shmem:");
    }
    finish(&lines);
    if (done->shared + swapped >= RELEVANT)
        find_surviving(footprint, process, &surviving, &surviving_swapped);
    done->shared = difference(done->shared, surviving);
    done->bytes = own + done->shared + difference(swapped, surviving_swapped);
    return 0;
}

void footprint_begin(struct footprint *footprint, uint64_t token) {
    if (footprint->token == token)
        return;
    footprint->token = token;
    footprint->files_count = footprint->devices_count = 0;
}

/// Remembers the file of a descriptor, if only processes hold it and it is in memory.
static void consider(struct footprint *footprint, int folder, const char *name, uint64_t *bytes) {
    char target[512];
    ssize_t length = readlinkat(folder, name, target, sizeof target - 1);
    if (length <= 0)
        return;
    target[length] = 0;
    if (target[0] != '/' || !is_deleted(target))
        return;
    struct statx about;
    // Not with a request to the file system: one in user space may never answer it.
    if (statx(folder, name, AT_STATX_DONT_SYNC, STATX_BLOCKS | STATX_INO | STATX_NLINK, &about) != 0 || about.stx_nlink > 0)
        return;
    dev_t device = makedev(about.stx_dev_major, about.stx_dev_minor);
    uint64_t size = about.stx_blocks * 512;
    if (size < RELEVANT || !is_in_memory(footprint, device) || footprint->files_count == FOOTPRINT_FILES)
        return;
    for (unsigned i = 0; i < footprint->files_count; i++)
        if (footprint->files[i].inode == about.stx_ino && footprint->files[i].device == device)
            return;
    footprint->files[footprint->files_count++] =
        (struct footprint_file){.device = device, .inode = about.stx_ino, .bytes = size};
    *bytes += size;
}

int footprint_find_files(struct footprint *footprint, int process, struct clinux_completion *done) {
    struct lines lines;
    find_devices(footprint, &lines);
    int folder = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -errno;
    DIR *entries = fdopendir(folder);
    if (!entries) {
        int error = -errno;
        close(folder);
        return error;
    }
    struct dirent *entry;
    for (unsigned count = 0; count < MOST_DESCRIPTORS && (entry = readdir(entries)); count++)
        if (entry->d_name[0] != '.')
            consider(footprint, folder, entry->d_name, &done->bytes);
    closedir(entries);
    return 0;
}

int footprint_find_mapped(struct footprint *footprint, int process, struct clinux_completion *done) {
    struct lines lines;
    struct mapping mapping;
    int error = begin(&lines, process, "maps");
    if (error < 0)
        return error;
    for (char *line; (line = next_line(&lines));) {
        if (!parse(line, &mapping) || mapping.inode == 0)
            continue;
        for (unsigned i = 0; i < footprint->files_count; i++) {
            struct footprint_file *file = &footprint->files[i];
            if (file->inode != mapping.inode || file->device != mapping.device)
                continue;
            done->bytes += file->bytes;
            file->bytes = 0;
        }
    }
    finish(&lines);
    return 0;
}
