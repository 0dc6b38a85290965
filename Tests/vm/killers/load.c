// load idle MIB          touches MIB, prints "ready" and sleeps: stands for an app that has nothing to do.
// load grow MIB          touches MIB in steps of 10, one each 20 ms, holds them for 2 s and prints "done".
// load loop SECONDS      stands for what the user looks at: every 10 ms it touches an eighth of its 32 MiB. Prints how late it was, in
//                        microseconds: the number of times, p50, p99, the longest.
// load serve MIB PATH    touches MIB, prints "ready" and waits at a Unix socket. Each second it touches a 64th of its memory, as runtimes with
//                        timers do. For a connection it touches a quarter, and answers.
// load ask SECONDS PATH  connects, and prints after how many microseconds the answer came; "none": it did not come in time.
// load wait MODE         waits until no process "load MODE …" is left, without a look in between that would take a processor from the loop.
// A page has 1,300 random bytes: memory of programs is compressed to about a third.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { page = 4096, random_bytes = 1296, period_us = 10000 };
static uint64_t state = 88172645463325252u;

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000L + t.tv_nsec / 1000;
}

static void fill(char *p, size_t bytes) {
    for (char *end = p + bytes; p < end; p += page)
        for (size_t i = 0; i < random_bytes; i += sizeof state) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            memcpy(p + i, &state, sizeof state);
        }
}

static char *filled(size_t mebibytes) {
    char *p = malloc(mebibytes << 20);
    if (!p) exit(3);
    fill(p, mebibytes << 20);
    return p;
}

static int compare(const void *a, const void *b) { return (*(const long *)a > *(const long *)b) - (*(const long *)a < *(const long *)b); }

static void loop(long seconds) {
    size_t size = 32 << 20, count = 0, most = (size_t)seconds * 1000000 / period_us;
    char *memory = filled(32);
    long *late = calloc(most, sizeof *late), start = now();
    for (size_t i = 0; count < most && now() - start < seconds * 1000000; i++) {
        long due = start + (long)i * period_us, left = due - now();
        // What it could not do in time it leaves out: a program that draws frames does not catch up.
        if (left < -period_us) continue;
        if (left > 0) usleep((useconds_t)left);
        for (size_t offset = i % 8 * (size / 8), end = offset + size / 8; offset < end; offset += page) memory[offset]++;
        late[count++] = now() - due;
    }
    qsort(late, count, sizeof *late, compare);
    printf("%zu %ld %ld %ld\n", count, late[count / 2], late[count * 99 / 100], late[count - 1]);
}

static int socket_at(const char *path, int is_server) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    if (is_server) {
        unlink(path);
        if (bind(s, (struct sockaddr *)&address, sizeof address) || listen(s, 16)) exit(4);
    } else if (connect(s, (struct sockaddr *)&address, sizeof address)) {
        return -1;
    }
    return s;
}

static void serve(size_t mebibytes, const char *path) {
    size_t size = mebibytes << 20, part = 0;
    char *memory = filled(mebibytes);
    struct pollfd listener = {socket_at(path, 1), POLLIN, 0};
    puts("ready");
    for (;;) {
        int has_client = poll(&listener, 1, 1000) > 0;
        size_t first = has_client ? 0 : part++ % 64 * (size / 64), end = first + size / (has_client ? 4 : 64);
        for (size_t offset = first; offset < end; offset += page) memory[offset]++;
        if (!has_client) continue;
        int client = accept(listener.fd, NULL, NULL);
        if (write(client, "!", 1) == 1) close(client);
    }
}

static void ask(long seconds, const char *path) {
    long start = now();
    char byte;
    int s = socket_at(path, 0);
    struct timeval limit = {.tv_sec = seconds};
    if (s >= 0) setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (s >= 0 && read(s, &byte, 1) == 1)
        printf("%ld\n", now() - start);
    else
        puts("none");
}

static int is_load(const char *pid, const char *mode) {
    char path[32], line[64] = "";
    snprintf(path, sizeof path, "/proc/%.15s/cmdline", pid);
    int file = open(path, O_RDONLY);
    ssize_t count = file < 0 ? 0 : read(file, line, sizeof line - 1);
    if (file >= 0) close(file);
    const char *name = count > 0 ? strrchr(line, '/') : NULL;
    return name && !strcmp(name, "/load") && !strcmp(name + sizeof "/load", mode);
}

static void wait_for_end(const char *mode) {
    DIR *processes = opendir("/proc");
    if (!processes) exit(5);
    for (struct dirent *entry; (entry = readdir(processes));) {
        if (!is_load(entry->d_name, mode)) continue;
        struct pollfd process = {(int)syscall(SYS_pidfd_open, atoi(entry->d_name), 0), POLLIN, 0};
        if (process.fd < 0) continue;
        poll(&process, 1, -1);
        close(process.fd);
    }
    closedir(processes);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IONBF, 0);
    if (argc != 3 && argc != 4) return 2;
    long number = atol(argv[2]);
    state += (uint64_t)getpid();
    if (!strcmp(argv[1], "idle")) {
        filled((size_t)number);
        puts("ready");
        for (;;) pause();
    } else if (!strcmp(argv[1], "grow")) {
        long start = now();
        for (long done = 0; done < number; done += 10) {
            filled(10);
            usleep(20000);
        }
        printf("done %ld\n", now() - start);
        sleep(2);
    } else if (!strcmp(argv[1], "loop")) {
        loop(number);
    } else if (!strcmp(argv[1], "wait")) {
        wait_for_end(argv[2]);
    } else if (!strcmp(argv[1], "serve") && argc == 4) {
        serve((size_t)number, argv[3]);
    } else if (!strcmp(argv[1], "ask") && argc == 4) {
        ask(number, argv[3]);
    } else {
        return 2;
    }
    return 0;
}
