// connection ROUNDS FILE: an app that measures calls over its own connection (GREENROOM_BUS_ADDRESS), and beside them a message of
// 64 bytes to a child and back over a pair of sockets. FILE gets a line for each round: the nanoseconds of the ping, of BeginTask and
// of EndTask. Rounds are 3 ms apart: greenroomd reads 1,000 messages of an app in a second.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what, int error) {
    fprintf(stderr, "connection: %s: %s\n", what, strerror(error < 0 ? -error : error));
    exit(1);
}

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

// A process that sends each message back.
static int start_echo(void) {
    int pair[2];
    char message[64];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) fail("socketpair", errno);
    if (fork() == 0) {
        close(pair[0]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (read(pair[1], message, sizeof message) == sizeof message)
            if (write(pair[1], message, sizeof message) != sizeof message) break;
        _exit(0);
    }
    close(pair[1]);
    return pair[0];
}

static long ping(int socket) {
    char message[64] = "ping";
    long start = now();
    if (write(socket, message, sizeof message) != sizeof message || read(socket, message, sizeof message) != sizeof message)
        fail("ping", EIO);
    return now() - start;
}

static long call(sd_bus *bus, const char *member, const char *types, const char *first, const char *second) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus_message *reply = NULL;
    long start = now();
    int result = sd_bus_call_method(
        bus, NULL, "/org/greenroom/self", "org.greenroom.Self1", member, &error, &reply, types, first, second);
    long time = now() - start;
    if (result < 0) fail(error.message ? error.message : member, result);
    sd_bus_message_unref(reply);
    sd_bus_error_free(&error);
    return time;
}

static sd_bus *take_part(void) {
    const char *address = getenv("GREENROOM_BUS_ADDRESS");
    sd_bus *bus;
    int result = sd_bus_new(&bus);
    if (result >= 0) result = sd_bus_set_address(bus, address ? address : "");
    if (result >= 0) result = sd_bus_start(bus);
    if (result >= 0)
        result = sd_bus_call_method(
            bus, NULL, "/org/greenroom/self", "org.greenroom.Self1", "Attach", NULL, NULL, "a{sv}", 0);
    if (result >= 0)
        result = sd_bus_call_method(bus, NULL, "/org/greenroom/self", "org.greenroom.Self1", "Ready", NULL, NULL, "");
    if (result < 0) fail("the connection failed", result);
    return bus;
}

int main(int count, char **words) {
    if (count != 3) fail("usage: connection ROUNDS FILE", EINVAL);
    char path[4096];
    snprintf(path, sizeof path, "%s.new", words[2]);
    FILE *file = fopen(path, "w");
    if (!file) fail(path, errno);
    int echo = start_echo();
    sd_bus *bus = take_part();
    for (int round = 0; round < atoi(words[1]); round++) {
        usleep(3000);
        long echoed = ping(echo);
        usleep(3000);
        long began = call(bus, "BeginTask", "ss", "upload", "token");
        long ended = call(bus, "EndTask", "s", "token", NULL);
        fprintf(file, "%ld %ld %ld\n", echoed, began, ended);
    }
    if (fclose(file) || rename(path, words[2])) fail(words[2], errno);
    pause();
}
