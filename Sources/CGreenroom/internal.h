#ifndef GREENROOM_INTERNAL_H
#define GREENROOM_INTERNAL_H

#include "greenroom.h"

#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>

// With -fvisibility=hidden only these functions are exported; libgreenroom.map has their versions.
#define PUBLIC __attribute__((visibility("default")))

#define GREENROOM_VERSION "0.2.0"
#define SELF_PATH "/org/greenroom/self"
#define SELF_INTERFACE "org.greenroom.Self1"

#define SECOND ((uint64_t)1000000)
// How long a call waits for greenroomd. A daemon that is replaced answers within it.
#define CALL_USEC (10 * SECOND)
// How long the end of the app waits for what it has sent.
#define FLUSH_USEC SECOND
// How long a daemon may take to accept a connection.
#define HANDSHAKE_USEC (5 * SECOND)
// The pauses between attempts to connect. A daemon that is replaced is back within a few of the first. A new daemon waits 3 s for
// the processes that were connected to the one before, so the last is shorter than that.
#define FIRST_PAUSE_USEC (SECOND / 20)
#define LAST_PAUSE_USEC SECOND
// Calls that wait for the daemon, and their size with the memfds. More are refused at once.
#define MAX_CALLS 1000
#define MAX_CALL_BYTES ((size_t)16 << 20)
// The texts of one call. greenroomd ends connections that send messages of more than 64 KiB.
#define MAX_TEXT ((size_t)32 << 10)
// Events that the program has not handled, and their texts. The daemon has at most 256 that wait; what does not fit is repeated
// after a reconnect.
#define MAX_EVENTS 4096
#define MAX_EVENT_BYTES ((size_t)16 << 20)
// The texts of one event. greenroomd sends at most 64 KiB.
#define MAX_EVENT_TEXT ((size_t)1 << 20)
#define MAX_NAMES 1024
#define MAX_STATE ((size_t)1 << 20)
#define MAX_SNAPSHOT ((size_t)8 << 20)
#define MAX_TITLE 128
#define KINDS 19

/// How an object takes part.
enum mode { MODE_LIVE, MODE_OUTSIDE, MODE_CHILD };

/// The arguments of a call.
enum arguments {
    ARGUMENTS_NONE, ARGUMENTS_TEXT, ARGUMENTS_TASK, ARGUMENTS_FLAG, ARGUMENTS_ANSWER, ARGUMENTS_DESCRIPTOR, ARGUMENTS_ATTACH, ARGUMENTS_SCENE_SNAPSHOT,
    ARGUMENTS_PROGRESS
};

/// The values of its reply.
enum values { VALUES_NONE, VALUES_TIME, VALUES_STATE, VALUES_LAUNCH };

/// A call of a method, in a form that every new connection can send again.
struct call {
    struct call *next;
    greenroom_app *app;
    const char *member;
    enum arguments arguments;
    enum values values;
    char *text;
    /// The type of the snapshot of a scene, or the title of a task.
    char *type;
    char token[33];
    uint64_t serial;
    /// The progress of a task.
    uint64_t done, total;
    /// The result of a wake, or NULL.
    const char *result;
    bool flag;
    int descriptor;
    size_t size;
    /// The task that it begins, if that still exists.
    greenroom_task *task;
    /// The connection has got it. NULL: it waits for one.
    sd_bus_slot *slot;
    /// A function waits for it, and frees it.
    bool is_awaited;
    bool is_done;
    greenroom_reply_handler_t handler;
    void *userdata;
    int error;
    char *sentence, *error_name;
    uint64_t usec;
    void *data;
    size_t data_size;
};

/// An event that waits for its handler, with the memory of its texts.
struct event {
    struct event *next;
    greenroom_event public;
    char **names;
    size_t size;
};

/// An event that the program answers later.
struct later {
    struct later *next;
    uint64_t serial;
    greenroom_kind kind;
};

struct handler {
    greenroom_handler_t function;
    void *userdata;
};

struct greenroom_task {
    greenroom_task *next;
    /// NULL: the app is freed, or has no Greenroom.
    greenroom_app *app;
    char *name;
    char token[33];
    bool is_expiring, is_notified;
    /// What was reported last, and when; 0: nothing.
    char title[MAX_TITLE + 1];
    uint64_t reported;
    greenroom_expired_t expired;
    void *userdata;
};

struct greenroom_app {
    greenroom_app *next;
    pid_t process;
    char *address, *library;
    greenroom_launch launch;
    struct handler handlers[KINDS];
    greenroom_log_t log;
    void *log_userdata;
    char *error, *error_name;
    bool is_started, is_ended, has_left, is_dispatching;

    // Connection
    sd_bus *bus;
    sd_bus_slot *match;
    /// It is wanted: something was called.
    bool wants_connection;
    bool is_pumping, is_ready, has_failed;
    /// An event was not received.
    bool lacks_memory;
    uint64_t connected_at, connect_at, pause;
    /// The kinds of the last Attach over this connection. 0: none.
    unsigned attached_kinds;
    /// An Attach was answered: the launch is known.
    bool knows_launch;
    greenroom_end last_end;
    bool has_last_end;
    char *last_summary;

    struct call *calls, *replies;
    size_t n_calls, call_bytes;

    // Events
    struct event *events, **events_end;
    size_t n_events, event_bytes;
    struct later *later;
    /// The serial of the last event that was received: what a new connection need not repeat. 0: none, not even a launch.
    uint64_t last_serial;
    greenroom_task *tasks;

    // Loop
    int epoll, timer, pending, wake, signals[2];
    /// What the descriptors are set to.
    int polled_bus;
    uint32_t polled_events;
    uint64_t timer_at;
    bool is_pending;
};

// app.c
enum mode mode_of(greenroom_app *app);
/// Keeps the sentence of an error. Returns `error`.
int fail(greenroom_app *app, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
int fail_memory(greenroom_app *app);
int fail_child(greenroom_app *app, const char *function);
/// Keeps the error of a call that is done. Returns it.
int fail_call(greenroom_app *app, const struct call *call);
void warn(greenroom_app *app, int priority, const char *format, ...) __attribute__((format(printf, 3, 4)));
uint64_t now_usec(void);
/// The time of a deadline that is this far away.
uint64_t after_usec(uint64_t span);

// call.c
struct call *call_new(greenroom_app *app, const char *member, enum arguments arguments, enum values values);
void call_free(struct call *call);
/// Sets the text of a call. Returns -EINVAL, -EMSGSIZE or -ENOMEM.
int call_set_text(struct call *call, const char *text);
/// Queues a call, which belongs to the queue then. Returns -ENOBUFS, and does not queue it, if too many wait.
int call_queue(struct call *call, bool is_limited);
/// Queues a call without a limit and without interest in its reply: an answer, or the end of a task.
void call_must(struct call *call);
/// Sends a call, waits for its reply, and keeps its error. The call belongs to the caller.
int call_wait(struct call *call);
/// Queues a call whose reply goes to a handler. Frees it after a failure.
int call_async(struct call *call, greenroom_reply_handler_t handler, void *userdata);
/// Waits for the reply, or queues the call for a handler if is_async. Without Greenroom it succeeds. Frees the call.
int call_finish(struct call *call, bool is_async, greenroom_reply_handler_t handler, void *userdata);
/// Replaces a call of the same method that is not sent yet, or queues this one. Frees it after a failure.
int call_latest(struct call *call);
/// A call that needs no daemon: its reply is delivered by the next dispatch. Frees it if there is no handler.
int call_local(struct call *call, greenroom_reply_handler_t handler, void *userdata);
/// The outcome of a call is known: takes it out of the queue, for its handler or the function that waits.
void call_done(struct call *call);
/// Takes a call out of the queue.
void call_remove(struct call *call);
/// Queues Attach before all other calls, if the kinds have changed since the last one of this connection.
int call_attach(greenroom_app *app);
/// Sends what can be sent now.
void call_begin(greenroom_app *app);
void call_deliver_replies(greenroom_app *app);

// message.c
/// Sends a call over the connection. Its slot is set.
int message_send(struct call *call, sd_bus_message_handler_t handler);
/// Reads the outcome of a call from its reply.
void message_read_reply(struct call *call, sd_bus_message *message);
/// Reads a file of at most `limit` bytes, and adds a NUL. Anything else than a file, or a larger one, is an error.
int message_read_file(int descriptor, size_t limit, void **ret, size_t *ret_size);

// record.c
/// Reads the launch from the answer to Attach.
int record_read_launch(greenroom_app *app, sd_bus_message *message);
void record_clear(greenroom_app *app);
/// Calls `read` for each entry of an a{sv}, with its key and the type of its value. `read` returns 1 if it has read the value.
int record_each(sd_bus_message *message, int (*read)(sd_bus_message *, const char *key, const char *type, void *), void *userdata);
/// Reads a value of a record if it has the right type: 1, or 0 if it has another one. A text is copied.
int record_read_text(sd_bus_message *message, const char *type, char **ret);
int record_read_number(sd_bus_message *message, const char *type, uint64_t *ret);
int record_read_int(sd_bus_message *message, const char *type, int *ret);
int record_read_flag(sd_bus_message *message, const char *type, int *ret);
/// Reads seconds as microseconds. Infinity, and what is too large, is GREENROOM_UNLIMITED.
int record_read_span(sd_bus_message *message, const char *type, uint64_t *ret);
/// Reads texts, and NULL: `ret` is one allocation for the pointers, and one for each of the first MAX_NAMES texts.
int record_read_texts(sd_bus_message *message, const char *type, char ***ret, size_t *ret_count);
void record_free_texts(char **texts);

// connection.c
/// Does all that can be done without waiting: connects, reads, sends.
void connection_pump(greenroom_app *app);
/// When the connection has to be looked at, even if nothing arrives.
uint64_t connection_deadline(greenroom_app *app);
/// Waits until the connection has something to do, until `deadline` at most.
void connection_wait(greenroom_app *app, uint64_t deadline);
/// Waits, for `usec` at most, until every call has its reply.
void connection_flush(greenroom_app *app, uint64_t usec);
void connection_close(greenroom_app *app);

// event.c
int event_receive(sd_bus_message *message, void *userdata, sd_bus_error *error);
/// Queues an event that does not come from greenroomd.
int event_local(greenroom_app *app, greenroom_kind kind, const char *text);
struct event *event_take(greenroom_app *app);
void event_free(struct event *event);
bool event_queue_is_full(greenroom_app *app);
/// Calls the handler of an event, and answers it.
int event_handle(greenroom_app *app, const greenroom_event *event);
/// The names of the kinds that the app handles, sorted, and NULL. `names` has KINDS elements.
void event_handled_names(greenroom_app *app, const char **names);
unsigned event_handled_kinds(greenroom_app *app);

// task.c
void task_mark_expiring(greenroom_app *app, const char *const *names);
bool task_has_expired(greenroom_app *app);
void task_tell_expired(greenroom_app *app);
void task_leave_all(greenroom_app *app);
/// The call that began it was refused, or has no reply: it may be open nevertheless.
void task_refused(greenroom_app *app, const char *token);

// loop.c
int loop_open(greenroom_app *app);
void loop_close(greenroom_app *app);
/// Called before the connection is closed: a descriptor stays in an epoll set while a child has a copy of it.
void loop_remove_bus(greenroom_app *app);
/// Sets the descriptors to what the object waits for. Called at the end of each function that changes it.
void loop_arm(greenroom_app *app);

// signals.c
int signals_catch(greenroom_app *app);
bool signals_are_caught(greenroom_app *app);
void signals_release(greenroom_app *app);
void signals_read(greenroom_app *app);

// fork.c
void fork_register(greenroom_app *app);
void fork_unregister(greenroom_app *app);

#endif
