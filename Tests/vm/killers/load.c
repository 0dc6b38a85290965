// load idle MIB          touches MIB, prints "ready" and sleeps: stands for an app that has nothing to do.
// load grow MIB          touches MIB in steps of 10, one each 20 ms, holds them for 2 s and prints "done".
// load loop SECONDS      stands for what the user looks at: every 10 ms it touches an eighth of its 32 MiB. Prints how late it was, in
//                        microseconds: the number of times, p50, p99, the longest.
// A page has 1,300 random bytes: memory of programs is compressed to about a third.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IONBF, 0);
    if (argc != 3) return 2;
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
    } else {
        return 2;
    }
    return 0;
}
