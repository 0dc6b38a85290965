/*
 * The queue of calls. A call stays in it until its reply has arrived: one whose reply was lost with the connection is sent again.
 * Every method of the interface may be repeated.
 */
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

struct call *call_new(greenroom_app *app, const char *member, enum arguments arguments, enum values values) {
    struct call *call = calloc(1, sizeof *call);
    if (!call)
        return NULL;
    call->app = app;
    call->member = member;
    call->arguments = arguments;
    call->values = values;
    call->descriptor = -1;
    // The header of a message has about 150 bytes.
    call->size = sizeof *call;
    return call;
}

void call_free(struct call *call) {
    if (!call)
        return;
    sd_bus_slot_unref(call->slot);
    if (call->descriptor >= 0)
        close(call->descriptor);
    free(call->text);
    free(call->type);
    free(call->sentence);
    free(call->error_name);
    free(call->data);
    free(call);
}

int call_set_text(struct call *call, const char *text) {
    if (!text)
        return fail(call->app, -EINVAL, "%s: expected a text.", call->member);
    size_t length = strlen(text);
    if (length > MAX_TEXT)
        return fail(call->app, -EMSGSIZE, "%s: the text has %zu bytes; expected at most %zu.", call->member, length, MAX_TEXT);
    call->text = strdup(text);
    call->size += length;
    return call->text ? 0 : fail_memory(call->app);
}

// MARK: The queue

static void insert(struct call *call, struct call **link) {
    greenroom_app *app = call->app;
    call->next = *link;
    *link = call;
    app->n_calls++;
    app->call_bytes += call->size;
}

static struct call **last_link(greenroom_app *app) {
    struct call **link = &app->calls;
    while (*link)
        link = &(*link)->next;
    return link;
}

void call_remove(struct call *call) {
    greenroom_app *app = call->app;
    for (struct call **link = &app->calls; *link; link = &(*link)->next) {
        if (*link != call)
            continue;
        *link = call->next;
        call->next = NULL;
        app->n_calls--;
        app->call_bytes -= call->size;
        break;
    }
    call->slot = sd_bus_slot_unref(call->slot);
}

void call_begin(greenroom_app *app) {
    app->wants_connection = true;
    connection_pump(app);
    loop_arm(app);
}

static int insert_last(struct call *call, bool is_limited) {
    greenroom_app *app = call->app;
    if (is_limited && (app->n_calls >= MAX_CALLS || app->call_bytes + call->size > MAX_CALL_BYTES))
        return fail(app, -ENOBUFS, "%s: too many calls wait for greenroomd.", call->member);
    insert(call, last_link(app));
    return 0;
}

int call_queue(struct call *call, bool is_limited) {
    greenroom_app *app = call->app;
    int r = insert_last(call, is_limited);
    if (r >= 0)
        call_begin(app);
    return r;
}

void call_must(struct call *call) { (void)call_queue(call, false); }

int call_latest(struct call *call) {
    greenroom_app *app = call->app;
    for (struct call **link = &app->calls; *link; link = &(*link)->next) {
        struct call *other = *link;
        if (other->slot || strcmp(other->member, call->member) != 0 || strcmp(other->token, call->token) != 0)
            continue;
        call_remove(other);
        call_free(other);
        insert(call, link);
        call_begin(app);
        return 0;
    }
    int r = call_queue(call, true);
    if (r < 0)
        call_free(call);
    return r;
}

int call_attach(greenroom_app *app) {
    unsigned kinds = event_handled_kinds(app);
    if (app->attached_kinds == kinds)
        return 0;
    struct call *call = call_new(app, "Attach", ARGUMENTS_ATTACH, VALUES_LAUNCH);
    if (!call)
        return fail_memory(app);
    for (struct call *other = app->calls, *next; other; other = next) {
        next = other->next;
        if (!other->slot && other->arguments == ARGUMENTS_ATTACH) {
            call_remove(other);
            call_free(other);
        }
    }
    app->attached_kinds = kinds;
    insert(call, &app->calls);
    return 0;
}

// MARK: Replies

/// The call that began a task was refused. What else has failed is in the log if no program asks for it.
static void look_at_failure(struct call *call) {
    greenroom_app *app = call->app;
    bool has_reader = call->is_awaited || call->handler;
    if (call->task)
        task_refused(app, call->token);
    // NotOpen: another process of the app was first, or the answer is a repeated one.
    if (!has_reader && call->arguments != ARGUMENTS_ANSWER && strcmp(call->member, "EndTask") != 0 && !call->task)
        warn(app, LOG_WARNING, "%s failed: %s", call->member, call->sentence ? call->sentence : strerror(-call->error));
}

void call_done(struct call *call) {
    greenroom_app *app = call->app;
    call_remove(call);
    call->is_done = true;
    if (call->error < 0)
        look_at_failure(call);
    if (call->is_awaited)
        return;
    if (!call->handler) {
        call_free(call);
        return;
    }
    struct call **link = &app->replies;
    while (*link)
        link = &(*link)->next;
    *link = call;
}

void call_deliver_replies(greenroom_app *app) {
    // Outside of Greenroom a call of a handler has its reply at once: the next dispatch delivers that.
    struct call *replies = app->replies;
    app->replies = NULL;
    while (replies) {
        struct call *call = replies;
        replies = call->next;
        greenroom_reply reply = {
            .error = call->error, .sentence = call->sentence ? call->sentence : "",
            .error_name = call->error_name ? call->error_name : "", .remaining_usec = call->usec, .data = call->data,
            .size = call->data_size,
        };
        call->handler(app, &reply, call->userdata);
        call_free(call);
    }
}

// MARK: Ways to call

int call_wait(struct call *call) {
    greenroom_app *app = call->app;
    call->is_awaited = true;
    int r = insert_last(call, true);
    if (r < 0)
        return r;
    app->wants_connection = true;
    uint64_t deadline = after_usec(CALL_USEC);
    for (connection_pump(app); !call->is_done && now_usec() < deadline; connection_pump(app))
        connection_wait(app, deadline);
    if (!call->is_done) {
        call_remove(call);
        call->error = -ETIMEDOUT;
        call->is_done = true;
        fail(app, 0, "greenroomd did not answer %s within 10s.", call->member);
    } else
        fail_call(app, call);
    loop_arm(app);
    return call->error;
}

int call_async(struct call *call, greenroom_reply_handler_t handler, void *userdata) {
    call->handler = handler;
    call->userdata = userdata;
    int r = call_queue(call, true);
    if (r < 0)
        call_free(call);
    return r;
}

int call_local(struct call *call, greenroom_reply_handler_t handler, void *userdata) {
    greenroom_app *app = call->app;
    call->handler = handler;
    call->userdata = userdata;
    // It is not in the queue.
    call_done(call);
    loop_arm(app);
    return 0;
}

int call_finish(struct call *call, bool is_async, greenroom_reply_handler_t handler, void *userdata) {
    bool is_live = mode_of(call->app) == MODE_LIVE;
    if (is_async)
        return is_live ? call_async(call, handler, userdata) : call_local(call, handler, userdata);
    int r = is_live ? call_wait(call) : 0;
    call_free(call);
    return r;
}
