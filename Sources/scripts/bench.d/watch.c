// The least that wakes a frozen server when input arrives: freeze, watch, thaw. The benchmark compares greenroomd with it.
//
//   watch GROUP COUNT SERVER KIND BOARD SLOT [NUMBER]
//
// Starts COUNT times SERVER KIND BOARD SLOT [NUMBER], with the slots SLOT, SLOT + 1, …, each in a cgroup GROUP-0, GROUP-1, ….
// Each byte on standard input freezes all servers that are not frozen, and is answered with a byte on standard output when
// their sockets are watched. A server is thawed when input arrives at one of its sockets. At the end of the input all servers
// are killed and the groups removed.
#include <dirent.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "board.h"

struct server {
    char group[512];
    pid_t pid;
    int freeze, events;
    int *pidfds, *pids, processes;
    int *duplicates, watched, space;
    int is_frozen;
};

static int epoll;
static struct server *servers;
static int count;
static const uint32_t input = UINT32_MAX;

static int open_in(const char *group, const char *name, int flags) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", group, name);
    int fd = open(path, flags | O_CLOEXEC);
    if (fd < 0) fail(path);
    return fd;
}

static void put(int fd, const char *byte) {
    if (pwrite(fd, byte, 1, 0) != 1) fail("cgroup");
}

static void start(struct server *server, const char *prefix, int index, char **command) {
    snprintf(server->group, sizeof server->group, "%s-%d", prefix, index);
    if (mkdir(server->group, 0755) != 0) fail(server->group);
    server->freeze = open_in(server->group, "cgroup.freeze", O_WRONLY);
    server->events = open_in(server->group, "cgroup.events", O_RDONLY);
    int procs = open_in(server->group, "cgroup.procs", O_WRONLY);
    char slot[16];
    snprintf(slot, sizeof slot, "%d", atoi(command[3]) + index);
    server->pid = fork();
    if (server->pid < 0) fail("fork");
    if (server->pid == 0) {
        int null = open("/dev/null", O_RDWR);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        put(procs, "0");
        dup2(null, 0);
        dup2(null, 1);
        command[3] = slot;
        execv(command[0], command);
        fail(command[0]);
    }
    close(procs);
}

static void find_processes(struct server *server) {
    int procs = open_in(server->group, "cgroup.procs", O_RDONLY);
    FILE *file = fdopen(procs, "r");
    int pid;
    while (file && fscanf(file, "%d", &pid) == 1) {
        size_t size = ((size_t)server->processes + 1) * sizeof(int);
        server->pids = realloc(server->pids, size);
        server->pidfds = realloc(server->pidfds, size);
        int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (pidfd < 0 || !server->pids || !server->pidfds) fail("pidfd_open");
        server->pids[server->processes] = pid;
        server->pidfds[server->processes++] = pidfd;
    }
    if (file) fclose(file);
}

static void watch_one(struct server *server, int pidfd, int number) {
    int fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
    struct stat about;
    if (fd < 0) fail("pidfd_getfd");
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.u32 = (uint32_t)(server - servers)};
    if (fstat(fd, &about) != 0 || !S_ISSOCK(about.st_mode) || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        close(fd);
        return;
    }
    if (server->watched == server->space) {
        server->space = server->space * 2 + 16;
        server->duplicates = realloc(server->duplicates, (size_t)server->space * sizeof(int));
        if (!server->duplicates) fail("realloc");
    }
    server->duplicates[server->watched++] = fd;
}

static void watch_process(struct server *server, int index) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", server->pids[index]);
    DIR *folder = opendir(path);
    if (!folder) fail(path);
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.') watch_one(server, server->pidfds[index], atoi(entry->d_name));
    closedir(folder);
}

static void await_frozen(struct server *server) {
    char text[128];
    for (;;) {
        ssize_t length = pread(server->events, text, sizeof text - 1, 0);
        if (length < 0) fail("cgroup.events");
        text[length] = 0;
        if (strstr(text, "frozen 1")) return;
        // The event of this file is delayed by about 14 ms.
        usleep(200);
    }
}

static void freeze_all(void) {
    for (int i = 0; i < count; i++)
        if (!servers[i].is_frozen) put(servers[i].freeze, "1");
    for (int i = 0; i < count; i++) {
        struct server *server = servers + i;
        if (server->is_frozen) continue;
        await_frozen(server);
        if (!server->processes) find_processes(server);
        server->is_frozen = 1;
        for (int p = 0; p < server->processes; p++) watch_process(server, p);
    }
}

// The entries are removed from epoll first: they would stay, as the server has the same open files.
static void thaw(struct server *server) {
    if (!server->is_frozen) return;
    for (int i = 0; i < server->watched; i++) {
        epoll_ctl(epoll, EPOLL_CTL_DEL, server->duplicates[i], NULL);
        close(server->duplicates[i]);
    }
    server->watched = 0;
    server->is_frozen = 0;
    put(server->freeze, "0");
}

static void stop_all(void) {
    for (int i = 0; i < count; i++) {
        thaw(servers + i);
        int fd = open_in(servers[i].group, "cgroup.kill", O_WRONLY);
        put(fd, "1");
        close(fd);
    }
    for (int i = 0; i < count; i++) {
        waitpid(servers[i].pid, NULL, 0);
        // Children of the server that were not reaped yet.
        for (int tries = 0; rmdir(servers[i].group) != 0 && errno == EBUSY && tries < 1000; tries++) usleep(5000);
    }
}

static void raise_limit(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argument_count, char **arguments) {
    if (argument_count < 7) return 2;
    raise_limit();
    count = atoi(arguments[2]);
    servers = calloc((size_t)count, sizeof *servers);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = input};
    if (!servers || epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &event) != 0) fail("epoll");
    for (int i = 0; i < count; i++) start(servers + i, arguments[1], i, arguments + 3);
    for (;;) {
        struct epoll_event events[64];
        int ready = epoll_wait(epoll, events, 64, -1);
        if (ready < 0 && errno != EINTR) fail("epoll_wait");
        for (int i = 0; i < ready; i++) {
            if (events[i].data.u32 != input) {
                thaw(servers + events[i].data.u32);
                continue;
            }
            char byte;
            if (read(0, &byte, 1) != 1) {
                stop_all();
                return 0;
            }
            freeze_all();
            if (write(1, &byte, 1) != 1) fail("write");
        }
    }
}
