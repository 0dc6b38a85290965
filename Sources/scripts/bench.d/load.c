// The client of the part `hosting`: sends requests at a constant rate to random ports of 127.0.0.1, each through a new connection,
// whether earlier ones have their answers or not.
//
//   load RATE SECONDS LENGTH PORT…    LENGTH: of the whole answer to an HTTP request, at least; 0: 64 bytes that must come back
//
// Prints the number of requests, of errors, and p50, p99 and maximum of the time from the moment at which a request was due to
// the end of its answer, in ns. A request without an answer 30 s after the last one was sent is an error, too.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "board.h"

#define MAXIMUM_DESCRIPTORS (1 << 20)

struct request {
    uint64_t due;
    size_t received;
    int is_sent, is_good;
};

static struct request *requests; // by descriptor
static uint64_t *times;
static long answered, errors, open_requests;
static size_t length;
static const char *first_error = "";
static int first_errno;
static char question[128];
static size_t question_length;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void end(int fd, const char *error) {
    if (error) {
        if (!errors++) first_error = error, first_errno = errno;
    } else {
        times[answered++] = now() - requests[fd].due;
    }
    open_requests--;
    close(fd);
}

static void begin(int epoll, uint16_t port, uint64_t due) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || fd >= MAXIMUM_DESCRIPTORS) fail("socket");
    requests[fd] = (struct request){.due = due};
    open_requests++;
    struct epoll_event event = {.events = EPOLLOUT, .data.fd = fd};
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0 && errno != EINPROGRESS) end(fd, "connect");
    else if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll_ctl");
}

static void receive(int fd, struct request *request) {
    char buffer[65536];
    ssize_t count = read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EAGAIN) return;
    if (count < 0) return end(fd, "read");
    if (!request->received && count > 0)
        request->is_good = length ? count > 12 && !memcmp(buffer, "HTTP/1.", 7) && !memcmp(buffer + 8, " 200", 4) : 1;
    request->received += (size_t)count;
    if (!length && request->received >= question_length) return end(fd, NULL);
    errno = 0;
    if (count == 0) end(fd, length && request->is_good && request->received >= length ? NULL : "a part of the answer");
}

static void handle(int epoll, int fd) {
    struct request *request = &requests[fd];
    if (request->is_sent) return receive(fd, request);
    socklen_t size = sizeof errno;
    int error = 0;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || (errno = error) != 0) return end(fd, "connect");
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    request->is_sent = 1;
    if (send(fd, question, question_length, MSG_NOSIGNAL) != (ssize_t)question_length) return end(fd, "send");
    if (epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event) != 0) fail("epoll_ctl");
}

static void turn(int epoll, int timeout) {
    struct epoll_event events[256];
    int count = epoll_wait(epoll, events, 256, timeout);
    if (count < 0 && errno != EINTR) fail("epoll_wait");
    for (int i = 0; i < count; i++) handle(epoll, events[i].data.fd);
}

static int compare(const void *one, const void *other) {
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

static unsigned long long rank(long share) {
    long index = (answered * share + 99) / 100 - 1;
    return answered ? times[index < 0 ? 0 : index] : 0;
}

int main(int count, char **arguments) {
    if (count < 5) return 2;
    long rate = atol(arguments[1]), total = rate * atol(arguments[2]);
    length = strtoul(arguments[3], NULL, 10);
    if (length) strcpy(question, "GET /page.txt HTTP/1.0\r\nHost: localhost\r\n\r\n");
    else memset(question, 'x', 64);
    question_length = strlen(question);
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) limit.rlim_cur = limit.rlim_max, setrlimit(RLIMIT_NOFILE, &limit);
    requests = calloc(MAXIMUM_DESCRIPTORS, sizeof *requests);
    times = calloc((size_t)total + 1, sizeof *times);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!requests || !times || epoll < 0) fail("memory");
    srandom(4);
    uint64_t start = now(), step = 1000000000 / (uint64_t)rate;
    for (long sent = 0; sent < total;) {
        for (uint64_t time = now(); sent < total && start + (uint64_t)sent * step <= time; sent++) {
            const char *port = arguments[4 + random() % (count - 4)];
            begin(epoll, (uint16_t)atoi(port), start + (uint64_t)sent * step);
        }
        turn(epoll, 1);
    }
    for (uint64_t deadline = now() + 30000000000; open_requests > 0 && now() < deadline;) turn(epoll, 100);
    if (open_requests > 0 && !errors) first_error = "no answer";
    errors += open_requests;
    qsort(times, (size_t)answered, sizeof *times, compare);
    printf("%ld %ld %llu %llu %llu\n", total, errors, rank(50), rank(99), rank(100));
    if (errors) fprintf(stderr, "bench: the first error: %s: %s\n", first_error, strerror(first_errno));
}
