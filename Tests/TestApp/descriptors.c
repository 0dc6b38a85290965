// A process that has a descriptor, for the tests of the watch over frozen processes, and the process at its other end.
//
//   descriptor KIND PROCS
//
// A child gets a descriptor of the kind and is moved to the cgroup whose file cgroup.procs is PROCS. Its pid and the number of
// the descriptor are written to the standard output, then a line for each byte that is read from the standard input:
//
//   p   something arrives at the descriptor
//   f   as much is sent as fits
//   e   waits until the other end of the descriptor is closed
//   q   whether it is closed: "open" or "end"
//   c   closes the other end
//   w   waits for the child, which ends with status 0 once it finds something at the descriptor
#include "descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MANY = 10000 };

static int held = -1, other = -1;
/// The parent needs the child's descriptor to make something arrive.
static int is_shared, waits_to_write, is_rare, count = 1, registered = -1;
static char folder[] = "/tmp/greenroom-held-XXXXXX", path[64];
static struct sockaddr_in address = {.sin_family = AF_INET};
static struct sockaddr_un local = {.sun_family = AF_UNIX};

static void must(int is_true, const char *what) {
    if (is_true) return;
    fprintf(stderr, "test app: %s: %s\n", what, strerror(errno));
    _exit(70);
}

static int bound(int type) {
    socklen_t size = sizeof address;
    int one = socket(AF_INET, type, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(one >= 0 && !bind(one, (struct sockaddr *)&address, size), "bind");
    must(!getsockname(one, (struct sockaddr *)&address, &size), "getsockname");
    must(type != SOCK_STREAM || !listen(one, 64), "listen");
    return one;
}

static int connected(void) {
    int one = socket(AF_INET, SOCK_STREAM, 0);
    must(!connect(one, (struct sockaddr *)&address, sizeof address), "connect");
    return one;
}

static void fill(int descriptor, size_t size) {
    static char bytes[65536];
    fcntl(descriptor, F_SETFL, O_NONBLOCK);
    while (write(descriptor, bytes, size) > 0) {}
}

static void make_pair(int type) {
    int ends[2];
    must(!socketpair(AF_UNIX, type, 0, ends), "socketpair");
    held = ends[0];
    other = ends[1];
}

static void make_tcp(void) {
    int listener = bound(SOCK_STREAM);
    other = connected();
    held = accept(listener, NULL, NULL);
    close(listener);
}

static void make_unix_listener(void) {
    snprintf(local.sun_path, sizeof local.sun_path, "%s/socket", folder);
    held = socket(AF_UNIX, SOCK_STREAM, 0);
    must(!bind(held, (struct sockaddr *)&local, sizeof local) && !listen(held, 8), "listen");
}

static void make_lingering(void) {
    struct linger linger = {.l_onoff = 1, .l_linger = 900};
    make_tcp();
    setsockopt(held, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    fill(held, 65536);
}

static void make_queue(void) {
    struct mq_attr about = {.mq_maxmsg = 4, .mq_msgsize = 8};
    snprintf(path, sizeof path, "/greenroom-%d", getpid());
    held = other = mq_open(path, O_RDWR | O_CREAT, 0600, &about);
    mq_unlink(path);
    must(held >= 0, "mq_open");
}

/// An epoll descriptor with a socket that the child closes. The parent keeps it, so it stays registered.
static void make_hidden(void) {
    struct epoll_event event = {.events = EPOLLIN};
    make_pair(SOCK_STREAM);
    registered = held;
    held = epoll_create1(0);
    must(!epoll_ctl(held, EPOLL_CTL_ADD, registered, &event), "epoll_ctl");
}

/// A connection in a network namespace that no process is in any more.
static void make_in_lost_namespace(void) {
    struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    int before = open("/proc/self/ns/net", O_RDONLY);
    // Without the permission for one the line that is written has -1.
    if (before < 0 || unshare(CLONE_NEWNET)) return;
    int one = socket(AF_INET, SOCK_DGRAM, 0);
    must(!ioctl(one, SIOCSIFFLAGS, &loopback), "ioctl");
    close(one);
    make_tcp();
    must(!setns(before, CLONE_NEWNET), "setns");
    close(before);
}

/// An epoll descriptor with a socket that the child closes, and with as many levels below as the kernel permits.
static void make_deep(void) {
    struct epoll_event event = {.events = EPOLLIN};
    int below = epoll_create1(0);
    for (int level = 0; level < 2; level++) {
        int above = epoll_create1(0);
        must(!epoll_ctl(above, EPOLL_CTL_ADD, below, &event), "epoll_ctl");
        below = above;
    }
    make_hidden();
    must(!epoll_ctl(held, EPOLL_CTL_ADD, below, &event), "epoll_ctl");
}

static int make_seccomp(void) {
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {1, &allow};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

static int make_map(void) {
    union bpf_attr map = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    return (int)syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof map);
}

static int make_perf_event(void) {
    struct perf_event_attr about = {.type = PERF_TYPE_SOFTWARE, .size = sizeof about, .config = PERF_COUNT_SW_DUMMY};
    return (int)syscall(SYS_perf_event_open, &about, 0, -1, -1, 0);
}

/// Kinds that few programs use. Without the permission for one the line that is written has -1.
static int make_rare(const char *kind) {
    struct epoll_event event = {.events = EPOLLIN};
    if (!strcmp(kind, "lost-namespace")) make_in_lost_namespace();
    else if (!strcmp(kind, "deep")) make_deep();
    // Its other target is on a file system of which the kernel's own ones do not differ, for the daemon, from FUSE.
    else if (!strcmp(kind, "hidden-file")) {
        int file = open("/proc/self/mounts", O_RDONLY);
        make_hidden();
        must(!epoll_ctl(held, EPOLL_CTL_ADD, file, &event), kind);
    }
    else if (!strcmp(kind, "seccomp")) held = make_seccomp();
    else if (!strcmp(kind, "bpf")) held = make_map();
    else if (!strcmp(kind, "perf-event")) held = make_perf_event();
    else if (!strcmp(kind, "userfaultfd")) held = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    else if (!strcmp(kind, "blocking-userfaultfd")) held = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    else if (!strcmp(kind, "memfd")) held = memfd_create("held", 0);
    else if (!strcmp(kind, "namespace")) held = open("/proc/self/ns/mnt", O_RDONLY);
    else return 0;
    return 1;
}

static void make(const char *kind) {
    int ends[2];
    if (!strcmp(kind, "pipe")) must(!pipe(ends), kind), held = ends[0], other = ends[1];
    // The child has both ends.
    else if (!strcmp(kind, "own-pipe")) must(!pipe(ends), kind), held = ends[0], other = ends[1], must(dup(other) >= 0, kind);
    else if (!strcmp(kind, "blocked-pipe")) must(!pipe(ends), kind), held = ends[1], other = ends[0], fill(held, 4096), waits_to_write = 1;
    else if (!strcmp(kind, "write-end")) must(!pipe(ends), kind), held = ends[1], other = ends[0];
    else if (!strcmp(kind, "fifo")) {
        snprintf(path, sizeof path, "%s/fifo", folder);
        must(!mkfifo(path, 0600), kind);
        held = open(path, O_RDONLY | O_NONBLOCK);
        other = open(path, O_WRONLY);
    }
    else if (!strcmp(kind, "listener") || !strcmp(kind, "shared-listener")) held = bound(SOCK_STREAM), count = *kind == 's' ? 2 : 1;
    else if (!strcmp(kind, "thread-listener") || !strcmp(kind, "leaderless-listener")) held = bound(SOCK_STREAM);
    else if (make_rare(kind)) is_rare = strcmp(kind, "lost-namespace");
    else if (!strcmp(kind, "tcp") || !strcmp(kind, "fin") || !strcmp(kind, "urgent")) make_tcp();
    else if (!strcmp(kind, "blocked-tcp")) make_tcp(), fill(held, 65536), waits_to_write = 1;
    else if (!strcmp(kind, "lingering")) make_lingering();
    else if (!strcmp(kind, "udp")) held = bound(SOCK_DGRAM);
    else if (!strcmp(kind, "unix-listener")) make_unix_listener();
    else if (!strcmp(kind, "unix") || !strcmp(kind, "undumpable")) make_pair(SOCK_STREAM);
    else if (!strcmp(kind, "hidden")) make_hidden();
    else if (!strcmp(kind, "unix-datagram")) make_pair(SOCK_DGRAM);
    else if (!strcmp(kind, "unix-seqpacket")) make_pair(SOCK_SEQPACKET);
    else if (!strcmp(kind, "eventfd")) held = other = eventfd(0, 0), is_shared = 1;
    else if (!strcmp(kind, "timerfd")) held = timerfd_create(CLOCK_MONOTONIC, 0), is_shared = 1;
    else if (!strcmp(kind, "inotify")) held = inotify_init(), is_shared = 1, must(inotify_add_watch(held, folder, IN_CREATE) >= 0, kind);
    else if (!strcmp(kind, "terminal")) must(!openpty(&other, &held, NULL, NULL, NULL), kind);
    else if (!strcmp(kind, "queue")) make_queue(), is_shared = 1;
    else if (!strcmp(kind, "pidfd")) {
        other = fork();
        if (other == 0) for (;;) pause();
        held = (int)syscall(SYS_pidfd_open, other, 0);
    }
    else if (!strcmp(kind, "signalfd")) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGCHLD);
        held = signalfd(-1, &set, 0);
    }
    else if (!strcmp(kind, "uring")) {
        struct io_uring_params parameters = {0};
        int end = eventfd(0, 0);
        held = (int)syscall(SYS_io_uring_setup, 4, &parameters);
        // Without io_uring (a sysctl, or a container) the line that is written has -1.
        if (held >= 0) must(!syscall(SYS_io_uring_register, held, IORING_REGISTER_FILES, &end, 1), kind);
        close(end);
    }
    else if (!strcmp(kind, "file")) held = open("/etc/passwd", O_RDONLY);
    else if (!strcmp(kind, "many") || !strcmp(kind, "listener-last")) {
        struct rlimit limit;
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
        // The first ones stay open in the child without a peer.
        for (int i = 0; i < MANY / 2 - 1; i++) make_pair(SOCK_STREAM);
        if (*kind == 'l') held = bound(SOCK_STREAM); else make_pair(SOCK_STREAM);
    }
    else must(0, kind);
}

static void poke(const char *kind) {
    static char bytes[65536];
    struct itimerspec soon = {.it_value.tv_nsec = 1000000};
    if (strstr(kind, "unix-listener")) {
        int one = socket(AF_UNIX, SOCK_STREAM, 0);
        must(!connect(one, (struct sockaddr *)&local, sizeof local), kind);
    }
    else if (strstr(kind, "listener")) connected();
    else if (!strcmp(kind, "fin")) close(other);
    else if (!strcmp(kind, "urgent")) must(send(other, "u", 1, MSG_OOB) == 1, kind);
    else if (!strcmp(kind, "udp")) {
        int one = socket(AF_INET, SOCK_DGRAM, 0);
        must(sendto(one, "abc", 3, 0, (struct sockaddr *)&address, sizeof address) == 3, kind);
    }
    else if (!strcmp(kind, "eventfd")) must(!eventfd_write(held, 1), kind);
    else if (!strcmp(kind, "timerfd")) must(!timerfd_settime(held, 0, &soon, NULL), kind);
    else if (!strcmp(kind, "inotify")) {
        snprintf(path, sizeof path, "%s/file", folder);
        close(open(path, O_WRONLY | O_CREAT, 0600));
        unlink(path);
    }
    else if (!strcmp(kind, "queue")) must(!mq_send(held, "abc", 3, 0), kind);
    else if (!strcmp(kind, "pidfd")) kill(other, SIGKILL), waitpid(other, NULL, 0);
    else if (!strcmp(kind, "terminal")) must(write(other, "ab\n", 3) == 3, kind);
    else if (!strncmp(kind, "blocked-", 8)) {
        fcntl(other, F_SETFL, O_NONBLOCK);
        // What is still on its way comes later.
        for (int quiet = 0; quiet < 20; quiet++)
            if (read(other, bytes, sizeof bytes) > 0) quiet = 0; else poll(NULL, 0, 5);
    }
    else must(write(other, "abc", 3) == 3, kind);
}

static void wait_for_input(void) {
    // Some kinds are always ready.
    while (is_rare) pause();
    struct pollfd polled = {.fd = held, .events = waits_to_write ? POLLOUT : POLLIN | POLLPRI};
    while (poll(&polled, 1, -1) <= 0) {}
    _exit(polled.revents & (POLLIN | POLLPRI | POLLOUT) ? 0 : 1);
}

/// Leaves the descriptor table of the process, which then closes the descriptor.
static void *hold_in_own_table(void *done) {
    must(!unshare(CLONE_FILES), "unshare");
    sem_post(done);
    wait_for_input();
    return NULL;
}

/// Waits until the first thread has ended.
static void *hold_without_leader(void *done) {
    char text[256] = "";
    const char *state = NULL;
    while (!state || state[2] != 'Z') {
        int file = open("/proc/self/stat", O_RDONLY);
        ssize_t length = read(file, text, sizeof text - 1);
        close(file);
        text[length > 0 ? length : 0] = 0;
        state = strrchr(text, ')');
        if (state && state[2] != 'Z') sched_yield();
    }
    must(write(*(int *)done, "d", 1) == 1, "done");
    close(*(int *)done);
    wait_for_input();
    return NULL;
}

/// The process in the cgroup.
static void hold(const char *kind, int go, int done) {
    char byte;
    pthread_t thread;
    sem_t unshared;
    if (other != held) close(other);
    if (!strcmp(kind, "undumpable")) prctl(PR_SET_DUMPABLE, 0);
    close(registered);
    while (read(go, &byte, 1) < 0) {}
    close(go);
    close(0);
    close(1);
    if (!strcmp(kind, "leaderless-listener")) {
        static int end;
        end = done;
        must(!pthread_create(&thread, NULL, hold_without_leader, &end), "pthread_create");
        pthread_exit(NULL);
    }
    if (!strcmp(kind, "thread-listener")) {
        must(!sem_init(&unshared, 0, 0) && !pthread_create(&thread, NULL, hold_in_own_table, &unshared), "pthread_create");
        while (sem_wait(&unshared) < 0) {}
        close(held);
    }
    must(write(done, "d", 1) == 1, "done");
    close(done);
    if (!strcmp(kind, "thread-listener")) for (;;) pause();
    wait_for_input();
}

static int has_ended(int timeout) {
    struct pollfd polled = {.fd = other, .events = POLLRDHUP};
    int result;
    do result = poll(&polled, 1, timeout); while (result < 0 && errno == EINTR);
    return result > 0;
}

static void add_to_group(pid_t pid, const char *procs) {
    char text[16];
    int file = open(procs, O_WRONLY);
    int length = snprintf(text, sizeof text, "%d", pid);
    must(file >= 0 && write(file, text, (size_t)length) == length, procs);
    close(file);
}

int hold_descriptor(const char *kind, const char *procs) {
    pid_t children[2];
    int go[2], done[2], status;
    char command;
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    must(mkdtemp(folder) && !pipe(go) && !pipe(done), "mkdtemp");
    make(kind);
    for (int i = 0; i < count; i++) {
        children[i] = fork();
        if (children[i] == 0) close(go[1]), close(done[0]), hold(kind, go[0], done[1]);
        add_to_group(children[i], procs);
    }
    close(go[0]);
    must(write(go[1], "go", (size_t)count) == count, "go");
    close(go[1]);
    close(done[1]);
    for (int i = 0; i < count; i++) must(read(done[0], &command, 1) == 1, "done");
    close(done[0]);
    printf("%d %d\n", children[0], held);
    if (!is_shared && held >= 0 && strcmp(kind, "many") && strcmp(kind, "listener-last")) close(held);
    while (read(0, &command, 1) == 1) {
        switch (command) {
        case 'p': poke(kind); puts("poked"); break;
        case 'f': fill(other, strcmp(kind, "tcp") ? 1 : 65536); puts("filled"); break;
        case 'e': puts(has_ended(30000) ? "end" : "open"); break;
        case 'q': puts(has_ended(0) ? "end" : "open"); break;
        case 'c': close(other); puts("closed"); break;
        case 'w':
            waitpid(children[0], &status, 0);
            printf("%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
            break;
        default: return 64;
        }
    }
    // The test has killed the others.
    if (!strcmp(kind, "pidfd")) kill(other, SIGKILL);
    while (wait(NULL) > 0 || errno == EINTR) {}
    static const char *const names[] = {"socket", "fifo", "file"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
    return 0;
}
