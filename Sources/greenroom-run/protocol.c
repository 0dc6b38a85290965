// The streams of a command with --protocol=.
#include "protocol.h"
#include "parser.h"
#include "relay.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST_REQUESTS = 256,        // without an answer, in each direction
    PIECE = 16384,              // bytes that are read at once
    LONGEST_UNREAD = 1 << 20,   // bytes in a pipe (pipe-max-size, pipe(7))
};

struct stream {
    int from, to; // -1: closed
    size_t begin, end;
    char bytes[PIECE];
    struct parser parser;
    // The IDs of requests without an answer.
    uint64_t open[MOST_REQUESTS];
    size_t opened;
    bool has_more; // than can be counted
};

/// Not on the stack: pages that are never used take no memory.
static struct {
    enum protocol protocol;
    struct stream in, out;
    int unread;  // the command's end of its input: what it has not read stays there
    int written; // the command's end of its output, until there is a command
    // What a command has not read before it was ended.
    char *waiting;
    size_t waiting_begin, waiting_end;
    bool is_ended, is_restoring;
    bool ends_line; // the end of the line of an answer that was not passed on is still to come
    // The client's first message, if it is `initialize`.
    char initialize[PIECE];
    size_t initialize_length;
    uint64_t initialize_id;
    bool has_first; // message
    bool cannot_restore;
    bool can_hang_up; // the client's end of the input: it is no file
    bool is_unread;   // the client has closed the output
} state;

static bool is_empty(const struct stream *stream) { return stream->begin == stream->end; }

// MARK: Messages

static void answered(struct stream *stream, uint64_t id) {
    for (size_t i = 0; i < stream->opened; i++)
        if (stream->open[i] == id) {
            stream->open[i] = stream->open[--stream->opened];
            return;
        }
}

/// A message in `from` has ended.
static void count(struct stream *from, struct stream *other) {
    const struct parser *message = &from->parser;
    if (message->has_method && message->has_id) {
        if (from->opened < MOST_REQUESTS)
            from->open[from->opened++] = message->id;
        else
            from->has_more = true;
    } else if (message->has_id) {
        answered(other, message->id);
    } else if (message->has_method && message->has_cancelled && strcmp(message->method, "notifications/cancelled") == 0) {
        answered(from, message->cancelled);
    }
}

/// What another process of the command would have to know, too.
static void remember(void) {
    const struct parser *message = &state.in.parser;
    bool is_first = !state.has_first;
    state.has_first = true;
    if (message->has_method && strcmp(message->method, "initialize") == 0) {
        // A batch, one that is too long, or a second one.
        if (!is_first || message->base > 0 || state.initialize_length >= PIECE)
            state.cannot_restore = true;
        state.initialize_id = message->id;
        return;
    }
    if (is_first)
        state.initialize_length = 0;
    // Model Context Protocol, 2024-11-05 to 2025-11-25.
    if (message->has_method
        && (strcmp(message->method, "logging/setLevel") == 0 || strcmp(message->method, "resources/subscribe") == 0))
        state.cannot_restore = true;
}

static void read_client(void) {
    struct stream *in = &state.in;
    for (size_t i = in->begin; i < in->end; i++) {
        bool is_end = parser_read(&in->parser, in->bytes[i]);
        if (!state.has_first && (is_end || in->parser.depth > 0) && state.initialize_length < PIECE)
            // A line feed within a message is space.
            state.initialize[state.initialize_length++] = in->bytes[i] == '\n' ? ' ' : in->bytes[i];
        if (!is_end)
            continue;
        remember();
        count(in, &state.out);
    }
}

static bool is_within(const struct stream *stream) { return stream->parser.depth > 0 || stream->parser.is_broken; }

static bool has_open(const struct stream *stream) { return stream->opened > 0 || stream->has_more || is_within(stream); }

bool protocol_is_busy(void) {
    return has_open(&state.in) || has_open(&state.out) || protocol_has_input() || !is_empty(&state.out) || state.is_restoring
        || (state.protocol == MODEL_CONTEXT && state.cannot_restore);
}

bool protocol_client_left(bool is_sure) {
    bool is_answered = !has_open(&state.in) && is_empty(&state.out) && !protocol_has_input();
    return state.can_hang_up && state.in.from < 0 && (is_sure ? state.out.to < 0 || is_answered : state.is_unread);
}

bool protocol_has_input(void) { return !is_empty(&state.in) || state.waiting_begin < state.waiting_end; }

// MARK: A command that was started again

/// Into a pipe that has space for it.
static void tell_command(const char *bytes, size_t length) {
    if (write(state.in.to, bytes, length) != (ssize_t)length)
        state.cannot_restore = true;
}

/// - Returns: how many bytes are not passed on: all up to the answer to `initialize`, which the client has had already.
static size_t skip_restored(void) {
    static const char initialized[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
    struct parser *parser = &state.out.parser;
    for (size_t i = 0; i < state.out.end; i++) {
        bool is_answer = parser_read(parser, state.out.bytes[i]) && parser->has_id && !parser->has_method
            && parser->id == state.initialize_id;
        if (!is_answer)
            continue;
        tell_command(initialized, sizeof initialized - 1);
        state.is_restoring = false;
        state.ends_line = true;
        return i + 1;
    }
    return state.out.end;
}

// MARK: Bytes

static bool has_space(int descriptor) {
    struct pollfd space = {descriptor, POLLOUT, 0};
    return poll(&space, 1, 0) > 0 && space.revents & (POLLOUT | POLLERR);
}

/// Writes without waiting. O_NONBLOCK is not set: others use the caller's streams, too.
static ssize_t put(int descriptor, const char *bytes, size_t length) {
    ssize_t sent = send(descriptor, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0 || errno != ENOTSOCK)
        return sent;
    // Where poll(2) finds space, a pipe has space for so much (pipe(7)).
    return write(descriptor, bytes, length < PIPE_BUF ? length : PIPE_BUF);
}

static bool has_failed(ssize_t written) { return written < 0 && errno != EAGAIN && errno != EINTR; }

static void flush_waiting(void) {
    if (state.waiting_begin == state.waiting_end)
        return;
    ssize_t written = write(state.in.to, state.waiting + state.waiting_begin, state.waiting_end - state.waiting_begin);
    state.waiting_begin = has_failed(written) ? state.waiting_end : state.waiting_begin + (written > 0 ? (size_t)written : 0);
    if (state.waiting_begin < state.waiting_end)
        return;
    free(state.waiting);
    state.waiting = NULL;
    state.waiting_begin = state.waiting_end = 0;
}

static void flush(struct stream *stream) {
    while (!is_empty(stream) && stream->to >= 0 && has_space(stream->to)) {
        ssize_t written = put(stream->to, stream->bytes + stream->begin, stream->end - stream->begin);
        if (has_failed(written)) {
            // It has no reader any more: its writer is to know.
            close_end(&stream->to);
            close_end(&stream->from);
        }
        if (written <= 0)
            break;
        stream->begin += (size_t)written;
    }
    if (stream->to < 0)
        stream->begin = stream->end;
}

static void fill(struct stream *stream) {
    ssize_t length = read(stream->from, stream->bytes, sizeof stream->bytes);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    stream->begin = stream->end = 0;
    if (length <= 0)
        return close_end(&stream->from);
    stream->end = (size_t)length;
    if (stream == &state.in)
        return read_client();
    if (state.is_restoring)
        stream->begin = skip_restored();
    while (state.ends_line && !is_empty(stream) && strchr("\r\n", stream->bytes[stream->begin]))
        state.ends_line = stream->bytes[stream->begin++] != '\n';
    state.ends_line = state.ends_line && is_empty(stream);
    for (size_t i = stream->begin; i < stream->end; i++)
        if (parser_read(&stream->parser, stream->bytes[i]))
            count(stream, &state.in);
}

void protocol_poll(struct pollfd ready[PROTOCOL_ENDS]) {
    bool is_ready = !state.is_restoring && !state.is_ended;
    ready[0] = (struct pollfd){protocol_has_input() || state.is_restoring ? -1 : state.in.from, POLLIN, 0};
    ready[1] = (struct pollfd){is_ready && protocol_has_input() ? state.in.to : -1, POLLOUT, 0};
    ready[2] = (struct pollfd){is_empty(&state.out) ? state.out.from : -1, POLLIN, 0};
    ready[3] = (struct pollfd){state.out.to, is_empty(&state.out) ? 0 : POLLOUT, 0};
}

bool protocol_step(const struct pollfd ready[PROTOCOL_ENDS]) {
    if (ready[0].revents)
        fill(&state.in);
    if (ready[2].revents)
        fill(&state.out);
    if (ready[3].revents & (POLLERR | POLLHUP | POLLNVAL)) {
        close_end(&state.out.to);
        close_end(&state.out.from);
        state.out.begin = state.out.end;
        state.is_unread = true;
    }
    if (state.is_ended)
        return state.in.from >= 0 && state.out.to >= 0;
    if (!state.is_restoring) {
        flush_waiting();
        if (state.waiting_begin == state.waiting_end)
            flush(&state.in);
    }
    flush(&state.out);
    // The end of one side is the end of the other. A command that may be started again has the client's output until its last end.
    if (state.in.from < 0 && !protocol_has_input() && !state.is_restoring) {
        close_end(&state.in.to);
        close_end(&state.unread);
    }
    if (state.protocol != MODEL_CONTEXT && state.out.from < 0 && is_empty(&state.out))
        close_end(&state.out.to);
    return true;
}

// MARK: Processes of the command

static bool make_pipes(void) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) < 0)
        return false;
    if (pipe2(out, O_CLOEXEC) < 0) {
        close(in[0]);
        close(in[1]);
        return false;
    }
    // Of the relay's ends, not of the command's.
    fcntl(in[1], F_SETFL, O_NONBLOCK);
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    state.unread = in[0];
    state.in.to = in[1];
    state.out.from = out[0];
    state.written = out[1];
    return true;
}

bool protocol_begin(enum protocol protocol) {
    state.protocol = protocol;
    state.in.from = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    state.out.to = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    struct stat status;
    state.can_hang_up = fstat(STDIN_FILENO, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
    return state.in.from >= 0 && state.out.to >= 0 && make_pipes();
}

bool protocol_enter(void) { return dup2(state.unread, STDIN_FILENO) >= 0 && dup2(state.written, STDOUT_FILENO) >= 0; }

void protocol_started(void) {
    close_end(&state.written);
    // Of a command that is never started again nothing is collected.
    if (state.protocol != MODEL_CONTEXT)
        close_end(&state.unread);
    if (!state.is_ended)
        return;
    state.is_ended = false;
    state.out.parser = (struct parser){0};
    // A protocol without a state has no beginning.
    if (state.initialize_length == 0)
        return;
    state.is_restoring = true;
    tell_command(state.initialize, state.initialize_length);
    tell_command("\n", 1);
}

/// What the command has not read.
static bool collect_unread(void) {
    char *bytes = malloc(LONGEST_UNREAD);
    if (!bytes)
        return false;
    fcntl(state.unread, F_SETFL, O_NONBLOCK);
    size_t length = 0;
    ssize_t piece;
    while (length < LONGEST_UNREAD && (piece = read(state.unread, bytes + length, LONGEST_UNREAD - length)) > 0)
        length += (size_t)piece;
    if (length == 0) {
        free(bytes);
        return true;
    }
    state.waiting = bytes;
    state.waiting_end = length;
    return true;
}

bool protocol_ended(void) {
    close_end(&state.written);
    if (is_empty(&state.out) && state.out.from >= 0)
        fill(&state.out);
    bool can_restore = state.protocol == MODEL_CONTEXT && !state.cannot_restore && !state.is_restoring && state.in.from >= 0
        && state.out.to >= 0 && is_empty(&state.out) && !has_open(&state.out) && state.waiting_begin == state.waiting_end
        && collect_unread();
    // A request that it has read has no answer any more.
    if (!can_restore || (state.in.opened > 0 && !protocol_has_input()))
        return false;
    close_end(&state.unread);
    close_end(&state.in.to);
    close_end(&state.out.from);
    state.is_ended = make_pipes();
    return state.is_ended;
}

void protocol_finish(int signals) {
    close_end(&state.written);
    while (state.out.to >= 0) {
        if (is_empty(&state.out)) {
            if (state.out.from < 0)
                return;
            fill(&state.out);
            // What is left of the command has the other end.
            if (is_empty(&state.out) && state.out.from >= 0)
                return;
            continue;
        }
        struct pollfd ready[] = {{state.out.to, POLLOUT, 0}, {signals, POLLIN, 0}};
        if (poll(ready, 2, -1) > 0 && ready[1].revents)
            return;
        flush(&state.out);
    }
}
