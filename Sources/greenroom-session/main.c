#include "session.h"
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

sd_event *loop;
bool is_verbose;
uint64_t longest_silence = 600 * SECOND;

uint64_t now(void) {
    uint64_t time = 0;
    sd_event_now(loop, CLOCK_MONOTONIC, &time);
    return time;
}

bool copy(char *to, size_t size, const char *text) {
    size_t length = strlen(text);
    if (length >= size) return false;
    memcpy(to, text, length + 1);
    return true;
}

int retry_begin(struct retry *retry, sd_event_time_handler_t handler, void *userdata) {
    retry->began = now();
    int status = sd_event_add_time(loop, &retry->timer, CLOCK_MONOTONIC, 0, 0, handler, userdata);
    return status < 0 ? status : sd_event_source_set_enabled(retry->timer, SD_EVENT_OFF);
}

void retry_arm(struct retry *retry) {
    const uint64_t longest = 60 * SECOND;
    // What lasted for longer than the longest delay is tried again soon.
    if (now() - retry->began > longest || retry->delay == 0) retry->delay = SECOND / 2;
    retry->delay = retry->delay * 2 < longest ? retry->delay * 2 : longest;
    retry->began = now() + retry->delay;
    sd_event_source_set_time(retry->timer, retry->began);
    sd_event_source_set_enabled(retry->timer, SD_EVENT_ONESHOT);
}

static int usage(FILE *to, int status) {
    fputs(
        "Usage: greenroom-session [OPTION...]\n"
        "Reports to greenroomd which programs of this user play, record or are in a call, so that apps whose BackgroundModes=\n"
        "declare it are not suspended meanwhile. greenroom-session.service starts it for a user.\n\n"
        "  --silence SECONDS   how long a stream may be silent and still counts (600)\n"
        "  -v, --verbose       print what is shown, whenever it changes\n"
        "  --version           print the version\n"
        "  -h, --help          print this help\n", to);
    return status;
}

static int fail(const char *what, int status) {
    fprintf(stderr, "greenroom-session: %s: %s\n", what, strerror(-status));
    return EXIT_FAILURE;
}

// Between 1 s and 1 day.
static bool read_silence(const char *text) {
    char *end;
    errno = 0;
    unsigned long seconds = strtoul(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || seconds < 1 || seconds > 86400) {
        fprintf(stderr, "greenroom-session: --silence: invalid value '%s'; expected 1 to 86400 seconds\n", text);
        return false;
    }
    longest_silence = seconds * SECOND;
    return true;
}

static int begin(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    int status = sd_event_default(&loop);
    if (status >= 0) status = sd_event_add_signal(loop, NULL, SIGTERM, NULL, NULL);
    if (status >= 0) status = sd_event_add_signal(loop, NULL, SIGINT, NULL, NULL);
    if (status >= 0) status = reports_begin();
    if (status >= 0) status = digests_begin();
    if (status >= 0) status = alerts_begin();
    if (status >= 0) status = locations_begin();
    if (status >= 0) status = push_begin();
    if (status >= 0) status = buses_begin();
    if (status >= 0) status = streams_begin();
    return status;
}

// Opens those of the descriptors 0, 1 and 2 that are closed on /dev/null. A socket would get such a number, and what is printed
// would be sent to its peer.
static bool open_standard_descriptors(void) {
    for (int number = 0; number <= 2; number++)
        if (fcntl(number, F_GETFD) < 0 && open("/dev/null", O_RDWR) != number) return false;
    return true;
}

int main(int argc, char **argv) {
    if (!open_standard_descriptors()) return EXIT_FAILURE;
    static const struct option options[] = {
        {"silence", required_argument, NULL, 's'}, {"verbose", no_argument, NULL, 'v'}, {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'}, {0}};
    for (int option; (option = getopt_long(argc, argv, "vh", options, NULL)) != -1;) {
        switch (option) {
        case 'h': return usage(stdout, EXIT_SUCCESS);
        case 'v': is_verbose = true; break;
        case 'V': puts("greenroom-session " VERSION); return EXIT_SUCCESS;
        case 's':
            if (!read_silence(optarg)) return 2;
            break;
        default: return usage(stderr, 2);
        }
    }
    if (optind < argc) {
        fprintf(stderr, "greenroom-session: unexpected argument '%s'\n", argv[optind]);
        return 2;
    }
    int status = begin();
    if (status < 0) return fail("cannot start", status);
    sd_notify(0, "READY=1");
    status = sd_event_loop(loop);
    buses_end();
    return status < 0 ? fail("the event loop failed", status) : status;
}
