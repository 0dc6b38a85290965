/*
 * The connection to greenroomd. It has no thread: each function of the library that needs it does what can be done without waiting
 * (connection_pump), and the program's loop learns from descriptors when there is more to do.
 */
#include "internal.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <syslog.h>

// The most messages that are read before the program's loop has its turn.
#define MAX_MESSAGES 1024

static int receive_reply(sd_bus_message *message, void *userdata, sd_bus_error *error) {
    (void)error;
    struct call *call = userdata;
    // When a connection ends, sd-bus answers the calls that wait. Those are repeated over the next one.
    if (sd_bus_is_open(sd_bus_message_get_bus(message)) <= 0)
        return 0;
    message_read_reply(call, message);
    if (call->arguments == ARGUMENTS_ATTACH)
        call->app->knows_launch = true;
    call_done(call);
    return 0;
}

// MARK: Beginning and end

static void close_bus(greenroom_app *app) {
    app->match = sd_bus_slot_unref(app->match);
    app->bus = sd_bus_close_unref(app->bus);
    app->is_ready = false;
}

static void lose(greenroom_app *app, const char *reason) {
    if (!app->has_failed)
        warn(app, LOG_WARNING, "no connection to greenroomd (%s); reconnecting", reason);
    app->has_failed = true;
    for (struct call *call = app->calls; call; call = call->next)
        call->slot = sd_bus_slot_unref(call->slot);
    // A connection that ends at once is not tried in a loop without pauses.
    uint64_t now = now_usec();
    if (app->is_ready && now - app->connected_at > LAST_PAUSE_USEC)
        app->pause = FIRST_PAUSE_USEC;
    loop_remove_bus(app);
    close_bus(app);
    app->connect_at = now + app->pause;
    app->pause = app->pause * 3 / 2 < LAST_PAUSE_USEC ? app->pause * 3 / 2 : LAST_PAUSE_USEC;
}

/// Before anything else a new connection attaches; then it repeats the calls whose replies are missing.
static int prepare(greenroom_app *app) {
    for (struct call *call = app->calls, *next; call; call = next) {
        next = call->next;
        if (call->arguments == ARGUMENTS_ATTACH) {
            call_remove(call);
            call_free(call);
        }
    }
    app->attached_kinds = 0;
    return app->is_started ? call_attach(app) : 0;
}

static int connect_bus(greenroom_app *app) {
    app->connected_at = now_usec();
    app->lacks_memory = false;
    int r = sd_bus_new(&app->bus);
    r = r < 0 ? r : sd_bus_set_address(app->bus, app->address);
    r = r < 0 ? r : sd_bus_negotiate_fds(app->bus, 1);
    r = r < 0 ? r : sd_bus_match_signal(app->bus, &app->match, NULL, SELF_PATH, SELF_INTERFACE, "Event", event_receive, app);
    r = r < 0 ? r : sd_bus_start(app->bus);
    return r < 0 ? r : prepare(app);
}

void connection_close(greenroom_app *app) {
    for (struct call *call = app->calls; call; call = call->next)
        call->slot = sd_bus_slot_unref(call->slot);
    close_bus(app);
}

// MARK: Work

static void send_calls(greenroom_app *app) {
    for (struct call *call = app->calls, *next; call; call = next) {
        next = call->next;
        if (call->slot)
            continue;
        int r = message_send(call, receive_reply);
        if (r == -ENOBUFS && sd_bus_is_open(app->bus) > 0)
            // Its queue is full.
            return;
        if (r < 0 && sd_bus_is_open(app->bus) <= 0)
            return;
        if (r < 0) {
            call->error = r;
            call->sentence = strdup(strerror(-r));
            call_done(call);
            // That may have queued others.
            next = app->calls;
        }
    }
}

/// Returns a negative errno if the connection is lost.
static int work(greenroom_app *app) {
    for (int count = 0; count < MAX_MESSAGES; count++) {
        int r = sd_bus_process(app->bus, NULL);
        if (r < 0)
            return r;
        if (sd_bus_is_open(app->bus) <= 0)
            return -ECONNRESET;
        if (app->lacks_memory)
            return -ENOMEM;
        if (event_queue_is_full(app))
            return -ENOBUFS;
        if (!app->is_ready && sd_bus_is_ready(app->bus) > 0) {
            app->is_ready = true;
            if (app->has_failed)
                warn(app, LOG_INFO, "connected to greenroomd again");
            app->has_failed = false;
        }
        if (app->is_ready)
            send_calls(app);
        if (sd_bus_is_open(app->bus) <= 0)
            return -ECONNRESET;
        if (r == 0)
            return app->is_ready || now_usec() < app->connected_at + HANDSHAKE_USEC ? 0 : -ETIMEDOUT;
    }
    return 0;
}

void connection_pump(greenroom_app *app) {
    if (app->is_pumping || !app->wants_connection || mode_of(app) != MODE_LIVE)
        return;
    app->is_pumping = true;
    int r = 0;
    if (!app->bus && now_usec() >= app->connect_at && app->n_events < MAX_EVENTS / 2 && app->event_bytes < MAX_EVENT_BYTES / 2)
        r = connect_bus(app);
    if (r >= 0 && app->bus)
        r = work(app);
    if (r == -ENOBUFS && event_queue_is_full(app))
        lose(app, "too many events are not handled yet");
    else if (r < 0)
        lose(app, r == -ECONNRESET ? "closed by greenroomd" : strerror(-r));
    app->is_pumping = false;
    // Also for a fork by another thread while this one waits.
    loop_arm(app);
}

// MARK: Waiting

uint64_t connection_deadline(greenroom_app *app) {
    if (!app->wants_connection)
        return UINT64_MAX;
    if (!app->bus)
        // A full queue of events is emptied by the program, which then looks again.
        return app->n_events < MAX_EVENTS / 2 && app->event_bytes < MAX_EVENT_BYTES / 2 ? app->connect_at : UINT64_MAX;
    uint64_t deadline = UINT64_MAX;
    if (sd_bus_get_timeout(app->bus, &deadline) < 0)
        deadline = 0;
    if (!app->is_ready && app->connected_at + HANDSHAKE_USEC < deadline)
        deadline = app->connected_at + HANDSHAKE_USEC;
    return deadline;
}

void connection_wait(greenroom_app *app, uint64_t deadline) {
    uint64_t own = connection_deadline(app), now = now_usec();
    if (own < deadline)
        deadline = own;
    struct timespec span = {.tv_sec = 0};
    if (deadline > now) {
        // Longer spans than a minute are cut into several: this bounds no wait, and avoids overflows.
        uint64_t usec = deadline - now < 60 * SECOND ? deadline - now : 60 * SECOND;
        span = (struct timespec){.tv_sec = (time_t)(usec / SECOND), .tv_nsec = (long)(usec % SECOND) * 1000};
    }
    struct pollfd bus = {.fd = -1};
    if (app->bus) {
        int events = sd_bus_get_events(app->bus);
        bus.fd = sd_bus_get_fd(app->bus);
        bus.events = (short)(events < 0 ? POLLIN : events);
    }
    ppoll(&bus, 1, &span, NULL);
}

void connection_flush(greenroom_app *app, uint64_t usec) {
    uint64_t deadline = after_usec(usec);
    for (connection_pump(app); app->calls && now_usec() < deadline; connection_pump(app))
        connection_wait(app, deadline);
}
