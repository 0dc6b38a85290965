#include "clinux_watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum {
    FOLDER_BUFFER = 2048,
    // The shortest entry that getdents64(2) returns has 24 bytes.
    MOST_ENTRIES = FOLDER_BUFFER / 24,
    MOST_EVENTS = 64,
    TARGET_BUFFER = 8192,
    MOST_TARGETS = 131072,
    MOST_COMPARED = 64,
    MOST_WAITING = 256,
};

const unsigned clinux_most_entries = MOST_ENTRIES;
const unsigned clinux_most_events = MOST_EVENTS;

// --- What a descriptor is -------------------------------------------------------

static bool begins(const char *text, const char *prefix) { return strncmp(text, prefix, strlen(prefix)) == 0; }

/// What the owner can do with the descriptor, by the mode of its link (proc_pid_fd(5)).
static void find_access(int folder, const char *name, struct clinux_descriptor_entry *entry) {
    struct stat about;
    entry->can_read = entry->can_write = true;
    if (fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) == 0) {
        entry->can_read = about.st_mode & S_IRUSR;
        entry->can_write = about.st_mode & S_IWUSR;
    }
}

static int anonymous_kind(const char *name) {
    static const struct {
        const char *name;
        int kind;
    } known[] = {
        {"[eventpoll]", CLINUX_DESCRIPTOR_EPOLL},
        {"[eventfd]", CLINUX_DESCRIPTOR_EVENTFD},
        {"[timerfd]", CLINUX_DESCRIPTOR_TIMERFD},
        {"inotify", CLINUX_DESCRIPTOR_INOTIFY},
        {"[fanotify]", CLINUX_DESCRIPTOR_INOTIFY},
        {"[pidfd]", CLINUX_DESCRIPTOR_PIDFD},
        {"[signalfd]", CLINUX_DESCRIPTOR_SIGNALFD},
        {"[io_uring]", CLINUX_DESCRIPTOR_IO_URING},
        // Nothing arrives at these.
        {"bpf-", CLINUX_DESCRIPTOR_IGNORED},
        {"[landlock-ruleset]", CLINUX_DESCRIPTOR_IGNORED},
        {"[fscontext]", CLINUX_DESCRIPTOR_IGNORED},
        {"kvm-", CLINUX_DESCRIPTOR_IGNORED},
        {"[secretmem]", CLINUX_DESCRIPTOR_IGNORED},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (begins(name, known[i].name))
            return known[i].kind;
    return CLINUX_DESCRIPTOR_UNKNOWN;
}

/// The major numbers of terminals (kernel: devices.txt): consoles and serial lines, /dev/tty and /dev/ptmx, USB modems,
/// pseudo-terminals, USB serial lines, serial lines of boards, hypervisor consoles.
static bool is_terminal(unsigned major) {
    return major == 4 || major == 5 || major == 166 || (major >= 136 && major <= 143) || major == 188 || major == 204 ||
           major == 229;
}

/// /dev/fuse, /dev/net/tun, and /dev/input (kernel: devices.txt). Others are not watched: what a driver does when a
/// descriptor is closed or asked for its state is its own affair.
static bool is_watched_device(unsigned major, unsigned minor) {
    return (major == 10 && (minor == 229 || minor == 200)) || major == 13;
}

/// What a file with a path is.
static void classify_file(int folder, const char *name, const char *path, struct clinux_descriptor_entry *entry) {
    struct statx about;
    // The link leads to the file itself. The file system is not asked: one in user space may never answer.
    if (statx(folder, name, AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &about) != 0)
        return;
    unsigned major = about.stx_rdev_major;
    switch (about.stx_mode & S_IFMT) {
    case S_IFIFO:
        entry->kind = CLINUX_DESCRIPTOR_PIPE;
        entry->inode = about.stx_ino;
        entry->device = makedev(about.stx_dev_major, about.stx_dev_minor);
        find_access(folder, name, entry);
        break;
    case S_IFCHR:
        if (is_terminal(major))
            entry->kind = CLINUX_DESCRIPTOR_TERMINAL;
        else if (is_watched_device(major, about.stx_rdev_minor))
            entry->kind = CLINUX_DESCRIPTOR_DEVICE;
        break;
    case S_IFREG:
        // A queue is a file in the kernel's own file system, which has no path and no folders.
        if (about.stx_dev_major == 0 && !strchr(path + 1, '/') && !begins(path, "/memfd:") && !begins(path, "/SYSV") &&
            !begins(path, "/anon_hugepage") && !begins(path, "/dmabuf:"))
            entry->kind = CLINUX_DESCRIPTOR_MAYBE_QUEUE;
        break;
    default: break;
    }
}

int64_t clinux_known_links(const char *path) {
    struct statx about;
    if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_NLINK, &about) != 0)
        return -errno;
    return about.stx_nlink;
}

static void classify(int folder, const char *name, struct clinux_descriptor_entry *entry) {
    static const char anonymous[] = "anon_inode:";
    char link[128];
    ssize_t length = readlinkat(folder, name, link, sizeof link - 1);
    if (length < 0) {
        if (errno == EACCES || errno == EPERM)
            entry->kind = CLINUX_DESCRIPTOR_NOT_PERMITTED;
        return;
    }
    link[length] = 0;
    if (begins(link, "socket:[")) {
        entry->kind = CLINUX_DESCRIPTOR_SOCKET;
        entry->inode = strtoull(link + 8, NULL, 10);
    } else if (begins(link, "pipe:[")) {
        entry->kind = CLINUX_DESCRIPTOR_PIPE;
        entry->inode = strtoull(link + 6, NULL, 10);
        find_access(folder, name, entry);
    } else if (begins(link, anonymous)) {
        const char *kind = link + sizeof anonymous - 1;
        entry->kind = anonymous_kind(kind);
        strncpy(entry->name, kind, sizeof entry->name - 1);
    } else if (begins(link, "pidfd:[")) {
        entry->kind = CLINUX_DESCRIPTOR_PIDFD;
    } else if (link[0] == '/') {
        classify_file(folder, name, link, entry);
    }
}

int clinux_list_descriptors(int folder, struct clinux_descriptor_entry *entries) {
    _Alignas(struct dirent64) char buffer[FOLDER_BUFFER];
    int count = 0;
    // The folder may contain nothing but "." and "..".
    while (count == 0) {
        ssize_t length = getdents64(folder, buffer, sizeof buffer);
        if (length <= 0)
            return length < 0 ? -errno : 0;
        for (ssize_t offset = 0; offset < length;) {
            struct dirent64 *found = (struct dirent64 *)(void *)(buffer + offset);
            offset += found->d_reclen;
            char *end;
            long number = strtol(found->d_name, &end, 10);
            if (*end != 0 || found->d_name[0] == '.')
                continue;
            entries[count] = (struct clinux_descriptor_entry){.number = (int32_t)number};
            classify(folder, found->d_name, &entries[count]);
            count++;
        }
    }
    return count;
}

int clinux_describe_descriptor(int folder, int number, struct clinux_descriptor_entry *entry) {
    char name[16];
    snprintf(name, sizeof name, "%d", number);
    *entry = (struct clinux_descriptor_entry){.number = number};
    return faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : (classify(folder, name, entry), 0);
}

// --- Duplicates -------------------------------------------------------------------

int clinux_pidfd_getfd(int pidfd, int number) {
    long duplicate = syscall(SYS_pidfd_getfd, pidfd, number, 0); // close-on-exec by definition
    return duplicate < 0 ? -errno : (int)duplicate;
}

bool clinux_is_only_open_file(int descriptor) {
    // The end of a lease removes the owner for signals, and a lease that the app has.
    if (fcntl(descriptor, F_GETLEASE) != F_UNLCK || fcntl(descriptor, F_GETOWN) != 0)
        return false;
    if (fcntl(descriptor, F_SETLEASE, F_WRLCK) != 0)
        return false;
    fcntl(descriptor, F_SETLEASE, F_UNLCK);
    return true;
}

void clinux_close_all(const int *numbers, size_t count) {
    for (size_t first = 0; first < count;) {
        size_t end = first + 1;
        while (end < count && numbers[end] == numbers[end - 1] + 1)
            end++;
        // Since Linux 5.9.
        if (end - first == 1 || syscall(SYS_close_range, numbers[first], numbers[end - 1], 0) < 0)
            for (size_t i = first; i < end; i++)
                close(numbers[i]);
        first = end;
    }
}

// --- epoll(7) ---------------------------------------------------------------------

/// The devices of the kernel's file systems of sockets and pipes, and of /dev, as the kernel encodes them.
static uint32_t kernel_devices[3];

static void find_device(int descriptor, uint32_t *device) {
    struct stat about;
    // MKDEV of linux/kdev_t.h.
    if (descriptor >= 0 && fstat(descriptor, &about) == 0)
        *device = (uint32_t)(major(about.st_dev) << 20 | minor(about.st_dev));
    if (descriptor >= 0)
        close(descriptor);
}

static void find_kernel_devices(void) {
    int ends[2];
    find_device(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), &kernel_devices[0]);
    if (pipe2(ends, O_CLOEXEC) == 0) {
        close(ends[1]);
        find_device(ends[0], &kernel_devices[1]);
    }
    find_device(open("/dev/null", O_PATH | O_CLOEXEC), &kernel_devices[2]);
}

static bool is_socket_or_pipe(uint32_t device) {
    return device != 0 && (device == kernel_devices[0] || device == kernel_devices[1]);
}

struct target_line {
    struct clinux_epoll_target target;
    uint32_t device;
};

/// Reads one line.
/// \return whether it is about a target.
static bool parse_target(const uint8_t *text, size_t size, struct target_line *found) {
    char line[160];
    if (size >= sizeof line)
        return false;
    memcpy(line, text, size);
    line[size] = 0;
    if (!begins(line, "tfd:"))
        return false;
    const char *inode = strstr(line, " ino:"), *device = strstr(line, " sdev:");
    *found = (struct target_line){
        .target = {
            .number = (int32_t)strtol(line + 4, NULL, 10), .inode = inode ? strtoull(inode + 5, NULL, 16) : 0},
        .device = device ? (uint32_t)strtoul(device + 6, NULL, 16) : 0};
    if (is_socket_or_pipe(found->device) || (found->device != 0 && found->device == kernel_devices[2]))
        found->target.flags = CLINUX_TARGET_IN_KERNEL;
    return true;
}

/// Whether the descriptor that has the target's number now is of the same file. Of two targets with one number the first is
/// compared: the other one is of a file whose descriptor was closed. The kernel searches all targets for it.
static bool is_same(pid_t thread, int number, const struct clinux_epoll_target *target) {
    struct kcmp_epoll_slot slot = {.efd = (uint32_t)number, .tfd = (uint32_t)target->number, .toff = 0};
    return syscall(SYS_kcmp, thread, thread, KCMP_EPOLL_TFD, (unsigned long)target->number, &slot) == 0;
}

/// What is read of the file, and what is written.
struct target_list {
    pid_t thread;
    int number, output;
    unsigned compared;
    uint64_t count;
    size_t kept; // bytes of `text` that are no whole line yet
    uint8_t text[TARGET_BUFFER];
    size_t waiting; // targets that are not written yet
    struct clinux_epoll_target targets[MOST_WAITING];
};

/// A file in memory takes all, or there is no memory.
static int flush_targets(struct target_list *list) {
    ssize_t size = (ssize_t)(list->waiting * sizeof *list->targets);
    list->waiting = 0;
    return size == 0 || write(list->output, list->targets, (size_t)size) == size ? 0 : -ENOMEM;
}

/// Writes the targets of the whole lines among the first bytes of the text; 0 or -errno.
static int write_targets(struct target_list *list, size_t size) {
    size_t start = 0;
    const uint8_t *feed;
    while ((feed = memchr(list->text + start, '\n', size - start))) {
        struct target_line line;
        size_t end = (size_t)(feed - list->text);
        bool is_target = parse_target(list->text + start, end - start, &line);
        start = end + 1;
        if (!is_target)
            continue;
        if (++list->count > MOST_TARGETS)
            return -E2BIG;
        if (!is_socket_or_pipe(line.device) && list->compared++ < MOST_COMPARED &&
            is_same(list->thread, list->number, &line.target))
            line.target.flags |= CLINUX_TARGET_IS_SAME;
        if (list->waiting == sizeof list->targets / sizeof *list->targets && flush_targets(list) < 0)
            return -ENOMEM;
        list->targets[list->waiting++] = line.target;
    }
    list->kept = size - start;
    memmove(list->text, list->text + start, list->kept);
    return flush_targets(list);
}

int clinux_list_targets(int file, pid_t thread, int number, int output, uint64_t *count) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_kernel_devices);
    struct target_list list = {.thread = thread, .number = number, .output = output};
    int error = 0;
    while (error == 0) {
        ssize_t length = read(file, list.text + list.kept, sizeof list.text - list.kept);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0)
            error = -errno;
        if (length <= 0)
            break;
        error = write_targets(&list, list.kept + (size_t)length);
        if (error == 0 && list.kept == sizeof list.text)
            error = -EPROTO;
    }
    *count = list.count;
    return error;
}

// --- Threads with a table of their own -----------------------------------------------

/// The number of open descriptors of a thread: the size of its folder, since Linux 6.2; 0 on older kernels; or -errno.
static int64_t count_descriptors(pid_t process, pid_t thread) {
    char path[64];
    struct stat about;
    snprintf(path, sizeof path, "/proc/%d/task/%d/fd", process, thread);
    return stat(path, &about) < 0 ? -errno : about.st_size;
}

int clinux_share_descriptors(pid_t process, pid_t one, pid_t other) {
    long order = syscall(SYS_kcmp, one, other, KCMP_FILES, 0, 0);
    if (order >= 0)
        return order == 0;
    if (errno == ESRCH)
        return -ESRCH;
    // ENOSYS: a kernel without it. EPERM: a container forbids it, or the process may not be examined.
    int64_t first = count_descriptors(process, one), second = count_descriptors(process, other);
    if (first < 0 || second < 0)
        return (int)(first < 0 ? first : second);
    return first == second;
}

int64_t clinux_count_threads(const char *task_folder) {
    struct stat about;
    if (stat(task_folder, &about) < 0)
        return -errno;
    // "." and the entry in the folder above.
    return (int64_t)about.st_nlink - 2;
}

int clinux_epoll_create(void) {
    int descriptor = epoll_create1(EPOLL_CLOEXEC);
    return descriptor < 0 ? -errno : descriptor;
}

int clinux_epoll_set(int epoll, int descriptor, uint32_t events, uint64_t data, bool is_new) {
    struct epoll_event event = {.events = events, .data.u64 = data};
    return epoll_ctl(epoll, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event) < 0 ? -errno : 0;
}

int clinux_epoll_remove(int epoll, int descriptor) {
    return epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, NULL) < 0 ? -errno : 0;
}

int clinux_epoll_take(int epoll, struct clinux_epoll_event *events, int most) {
    struct epoll_event ready[MOST_EVENTS];
    int count = epoll_wait(epoll, ready, most < MOST_EVENTS ? most : MOST_EVENTS, 0);
    if (count < 0)
        return errno == EINTR ? 0 : -errno;
    for (int i = 0; i < count; i++)
        events[i] = (struct clinux_epoll_event){.events = ready[i].events, .data = ready[i].data.u64};
    return count;
}

uint32_t clinux_poll_now(int descriptor, uint32_t events) {
    // The numbers of poll(2) and epoll(7) are the same.
    struct pollfd polled = {.fd = descriptor, .events = (short)events};
    return poll(&polled, 1, 0) > 0 ? (uint32_t)(unsigned short)polled.revents : 0;
}
