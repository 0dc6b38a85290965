// Questions about sockets (sock_diag(7)), for a helper thread: for the counters of a TCP socket the kernel waits for the
// socket's lock.
#include "diagnose.h"
#include "clinux_watch.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LONGEST_QUESTION = 1 << 20,
    LONGEST_ANSWER = 32 << 20, // 65,536 sockets, as the reader keeps
    DATAGRAM = 32 * 1024,      // how much the kernel puts into one message of a dump
};

struct exchange {
    int file;
    off_t end; // where the next answer is written
    uint64_t answered;
    char *datagram;
};

/// Appends the datagram of `length` bytes, so that the next one begins at a multiple of NLMSG_ALIGNTO. 0 or -errno.
static int append(struct exchange *exchange, size_t length) {
    size_t aligned = NLMSG_ALIGN(length);
    memset(exchange->datagram + length, 0, aligned - length);
    for (size_t written = 0; written < aligned;) {
        ssize_t count = pwrite(exchange->file, exchange->datagram + written, aligned - written, exchange->end);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count < 0 ? -errno : -EIO;
        written += (size_t)count;
        exchange->end += count;
    }
    exchange->answered += aligned;
    return 0;
}

/// Whether a datagram of a dump has its end, or an error.
static bool is_last(const char *bytes, size_t length) {
    while (length >= sizeof(struct nlmsghdr)) {
        struct nlmsghdr header;
        memcpy(&header, bytes, sizeof header);
        if (header.nlmsg_len < sizeof header || header.nlmsg_len > length)
            return true;
        if (header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR)
            return true;
        size_t next = NLMSG_ALIGN(header.nlmsg_len);
        if (next >= length)
            return false;
        bytes += next;
        length -= next;
    }
    return length > 0;
}

/// Sends one request and receives all of its answer. 0 or -errno.
static int ask(struct exchange *exchange, int netlink, const struct nlmsghdr *request, bool is_dump) {
    // The kernel answers within send(2) and recv(2).
    if (send(netlink, request, request->nlmsg_len, MSG_DONTWAIT) < 0)
        return -errno;
    while (true) {
        ssize_t length = recv(netlink, exchange->datagram, DATAGRAM, MSG_DONTWAIT);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0)
            return -errno;
        int error = append(exchange, (size_t)length);
        if (error || !is_dump || length == 0 || exchange->answered >= LONGEST_ANSWER)
            return error;
        if (is_last(exchange->datagram, (size_t)length))
            return 0;
    }
}

static int ask_all(struct exchange *exchange, char *question, size_t size) {
    int netlink = -1, error = 0;
    for (size_t offset = 0; error == 0 && size - offset >= sizeof(struct nlmsghdr);) {
        const struct nlmsghdr *request = (const struct nlmsghdr *)(const void *)(question + offset);
        if (request->nlmsg_len < sizeof *request || request->nlmsg_len > size - offset) {
            error = -EBADMSG;
            break;
        }
        bool is_dump = (request->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
        // What is left of a dump in a socket would refuse the next one.
        if (is_dump && netlink >= 0) {
            close(netlink);
            netlink = -1;
        }
        if (netlink < 0)
            netlink = clinux_diag_open();
        error = netlink < 0 ? netlink : ask(exchange, netlink, request, is_dump);
        size_t next = NLMSG_ALIGN(request->nlmsg_len);
        if (next > size - offset)
            break;
        offset += next;
    }
    if (netlink >= 0)
        close(netlink);
    return error;
}

int diagnose(int file, struct clinux_completion *done) {
    struct stat about;
    if (fstat(file, &about) < 0)
        return -errno;
    if (about.st_size < 0 || about.st_size > LONGEST_QUESTION)
        return -E2BIG;
    size_t size = (size_t)about.st_size;
    char *question = malloc(size + 1), *datagram = malloc(DATAGRAM + NLMSG_ALIGNTO);
    int error = question && datagram ? 0 : -ENOMEM;
    if (error == 0 && pread(file, question, size, 0) != (ssize_t)size)
        error = -EIO;
    struct exchange exchange = {.file = file, .end = (off_t)NLMSG_ALIGN(size), .datagram = datagram};
    if (error == 0)
        error = ask_all(&exchange, question, size);
    done->bytes = exchange.answered;
    free(datagram);
    free(question);
    return error;
}
