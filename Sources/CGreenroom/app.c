#include "internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

// MARK: Errors and warnings

uint64_t now_usec(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec / 1000;
}

uint64_t after_usec(uint64_t span) {
    uint64_t now = now_usec();
    return span > UINT64_MAX - now ? UINT64_MAX : now + span;
}

static void set_error(greenroom_app *app, char *sentence, char *name) {
    free(app->error);
    free(app->error_name);
    app->error = sentence;
    app->error_name = name;
}

int fail(greenroom_app *app, int error, const char *format, ...) {
    char *sentence = NULL;
    va_list values;
    va_start(values, format);
    if (vasprintf(&sentence, format, values) < 0)
        sentence = NULL;
    va_end(values);
    set_error(app, sentence, NULL);
    return error;
}

int fail_memory(greenroom_app *app) {
    set_error(app, NULL, NULL);
    return -ENOMEM;
}

int fail_child(greenroom_app *app, const char *function) {
    return fail(app, -ECHILD, "%s: this is a child of the process that takes part.", function);
}

int fail_call(greenroom_app *app, const struct call *call) {
    if (call->error < 0)
        set_error(app, call->sentence ? strdup(call->sentence) : NULL, call->error_name ? strdup(call->error_name) : NULL);
    return call->error;
}

void warn(greenroom_app *app, int priority, const char *format, ...) {
    char line[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    for (char *each = line; *each; each++)
        if ((unsigned char)*each < ' ' || *each == 0x7f)
            *each = ' ';
    if (app->log)
        app->log(priority, line, app->log_userdata);
    else if (priority <= LOG_WARNING)
        fprintf(stderr, "greenroom: %s\n", line);
}

PUBLIC const char *greenroom_last_error(greenroom_app *app) { return app && app->error ? app->error : ""; }

PUBLIC const char *greenroom_last_error_name(greenroom_app *app) { return app && app->error_name ? app->error_name : ""; }

PUBLIC void greenroom_set_log(greenroom_app *app, greenroom_log_t log, void *userdata) {
    if (!app)
        return;
    app->log = log;
    app->log_userdata = userdata;
}

// MARK: The object

enum mode mode_of(greenroom_app *app) {
    if (app->process != getpid())
        return MODE_CHILD;
    return app->address ? MODE_LIVE : MODE_OUTSIDE;
}

/// Whether every part of a D-Bus address is a Unix socket. sd-bus also knows addresses that start programs.
static bool is_local(const char *address) {
    while (*address) {
        if (strncmp(address, "unix:", 5) != 0)
            return false;
        address += strcspn(address, ";");
        if (*address)
            address++;
    }
    return true;
}

static int copy_variable(const char **target, const char *name, const char *otherwise) {
    const char *value = getenv(name);
    value = value ? value : otherwise;
    *target = value ? strdup(value) : NULL;
    return value && !*target ? -ENOMEM : 0;
}

static int read_environment(greenroom_app *app) {
    const char *address = getenv("GREENROOM_BUS_ADDRESS"), *state = getenv("GREENROOM_LAUNCH_STATE");
    const char *first = getenv("GREENROOM_FIRST_LAUNCH");
    if (address && *address) {
        if (!is_local(address))
            return -EINVAL;
        app->address = strdup(address);
        if (!app->address)
            return -ENOMEM;
    }
    app->launch.foreground = !state || strcmp(state, "inactive") == 0;
    app->launch.first = first && strcmp(first, "1") == 0;
    if (copy_variable(&app->launch.app, "GREENROOM_APP", "") < 0 ||
        copy_variable(&app->launch.reason, "GREENROOM_LAUNCH_REASON", "user") < 0 ||
        copy_variable(&app->launch.url, "GREENROOM_LAUNCH_URL", NULL) < 0 ||
        copy_variable(&app->launch.inbox, "GREENROOM_INBOX", NULL) < 0 ||
        copy_variable(&app->launch.last_receipt, "GREENROOM_LAST_RECEIPT", NULL) < 0)
        return -ENOMEM;
    return 0;
}

static void release(greenroom_app *app) {
    free(app->address);
    free(app->library);
    free((char *)app->launch.app);
    free((char *)app->launch.reason);
    free((char *)app->launch.url);
    free((char *)app->launch.inbox);
    free((char *)app->launch.last_receipt);
    record_clear(app);
    set_error(app, NULL, NULL);
    free(app);
}

PUBLIC int greenroom_app_new(greenroom_app **ret) {
    if (!ret)
        return -EINVAL;
    *ret = NULL;
    greenroom_app *app = calloc(1, sizeof *app);
    if (!app)
        return -ENOMEM;
    app->process = getpid();
    app->events_end = &app->events;
    app->pause = FIRST_PAUSE_USEC;
    app->library = strdup("C " GREENROOM_VERSION);
    int r = app->library ? read_environment(app) : -ENOMEM;
    if (r >= 0)
        r = loop_open(app);
    if (r < 0) {
        release(app);
        return r;
    }
    fork_register(app);
    *ret = app;
    return 0;
}

PUBLIC greenroom_app *greenroom_app_free(greenroom_app *app) {
    if (!app)
        return NULL;
    if (mode_of(app) == MODE_LIVE)
        connection_flush(app, FLUSH_USEC);
    fork_unregister(app);
    signals_release(app);
    task_leave_all(app);
    connection_close(app);
    while (app->calls) {
        struct call *call = app->calls;
        call_remove(call);
        call_free(call);
    }
    while (app->replies) {
        struct call *call = app->replies;
        app->replies = call->next;
        call_free(call);
    }
    for (struct event *event; (event = event_take(app));)
        event_free(event);
    while (app->later) {
        struct later *later = app->later;
        app->later = later->next;
        free(later);
    }
    loop_close(app);
    release(app);
    return NULL;
}

PUBLIC int greenroom_is_inert(greenroom_app *app) { return !app || mode_of(app) != MODE_LIVE; }

PUBLIC const greenroom_launch *greenroom_get_launch(greenroom_app *app) { return app ? &app->launch : NULL; }

PUBLIC int greenroom_set_library(greenroom_app *app, const char *library) {
    if (!app)
        return -EINVAL;
    if (!library || strlen(library) > MAX_TEXT)
        return fail(app, -EINVAL, "greenroom_set_library: expected a short text.");
    char *copy = strdup(library);
    if (!copy)
        return fail_memory(app);
    free(app->library);
    app->library = copy;
    return 0;
}

PUBLIC int greenroom_set_handler(greenroom_app *app, greenroom_kind kind, greenroom_handler_t handler, void *userdata) {
    if (!app)
        return -EINVAL;
    if (!greenroom_kind_to_string(kind))
        return fail(app, -EINVAL, "greenroom_set_handler: there is no kind %d.", (int)kind);
    app->handlers[kind] = (struct handler){handler, userdata};
    if (!app->is_started || mode_of(app) != MODE_LIVE)
        return 0;
    int r = call_attach(app);
    call_begin(app);
    return r;
}

// MARK: Beginning and end

/// Queues a call without arguments of which only the latest counts.
static int report(greenroom_app *app, const char *member) {
    struct call *call = call_new(app, member, ARGUMENTS_NONE, VALUES_NONE);
    return call ? call_latest(call) : fail_memory(app);
}

PUBLIC int greenroom_start(greenroom_app *app) {
    if (!app)
        return -EINVAL;
    if (mode_of(app) == MODE_CHILD)
        return fail_child(app, "greenroom_start");
    if (app->is_started)
        return 0;
    if (mode_of(app) == MODE_OUTSIDE) {
        app->is_started = true;
        sd_notify(0, "READY=1");
        return event_local(app, GREENROOM_DID_BECOME_ACTIVE, "launch");
    }
    // call_attach() attaches an app that is started.
    app->is_started = true;
    struct call *ready = call_new(app, "Ready", ARGUMENTS_NONE, VALUES_NONE);
    int r = ready ? call_attach(app) : fail_memory(app);
    if (r < 0) {
        app->is_started = false;
        if (ready)
            call_free(ready);
        return r;
    }
    call_must(ready);
    return 0;
}

PUBLIC int greenroom_stop(greenroom_app *app) {
    if (!app)
        return -EINVAL;
    int r = 0;
    app->is_ended = true;
    switch (mode_of(app)) {
    case MODE_LIVE:
        r = report(app, "Stopping");
        break;
    case MODE_OUTSIDE:
        sd_notify(0, "STOPPING=1");
        loop_arm(app);
        break;
    case MODE_CHILD:
        break;
    }
    return r;
}

PUBLIC int greenroom_request_end(greenroom_app *app, const char *reason) {
    if (!app)
        return -EINVAL;
    if (!reason)
        return fail(app, -EINVAL, "greenroom_request_end: expected a reason.");
    if (mode_of(app) == MODE_CHILD)
        return fail_child(app, "greenroom_request_end");
    return event_local(app, GREENROOM_WILL_TERMINATE, reason);
}

/// Waits until greenroomd has answered the first Attach. Returns 1 if it is known what it says.
static int wait_for_launch(greenroom_app *app, const char *function) {
    switch (mode_of(app)) {
    case MODE_OUTSIDE:
        return 0;
    case MODE_CHILD:
        return app->knows_launch;
    case MODE_LIVE:
        break;
    }
    if (!app->is_started)
        return fail(app, -EAGAIN, "%s: call greenroom_start() first.", function);
    uint64_t deadline = after_usec(CALL_USEC);
    for (connection_pump(app); !app->knows_launch && now_usec() < deadline; connection_pump(app))
        connection_wait(app, deadline);
    loop_arm(app);
    return app->knows_launch ? 1 : fail(app, -ETIMEDOUT, "greenroomd did not answer Attach within 10s.");
}

PUBLIC int greenroom_last_end(greenroom_app *app, const greenroom_end **ret) {
    if (!app || !ret)
        return -EINVAL;
    *ret = NULL;
    int r = wait_for_launch(app, "greenroom_last_end");
    if (r > 0 && app->has_last_end)
        *ret = &app->last_end;
    return r < 0 ? r : *ret != NULL;
}

PUBLIC int greenroom_last_summary(greenroom_app *app, const char **ret) {
    if (!app || !ret)
        return -EINVAL;
    *ret = NULL;
    int r = wait_for_launch(app, "greenroom_last_summary");
    if (r > 0)
        *ret = app->last_summary;
    return r < 0 ? r : *ret != NULL;
}

// MARK: Reports

/// Sends a status to a service manager. A line break would begin another message.
static void notify_status(const char *text) {
    char *line = NULL;
    if (asprintf(&line, "STATUS=%s", text) < 0)
        return;
    for (char *each = line; *each; each++)
        if (*each == '\n' || *each == '\r')
            *each = ' ';
    sd_notify(0, line);
    free(line);
}

PUBLIC int greenroom_set_status(greenroom_app *app, const char *text) {
    if (!app)
        return -EINVAL;
    struct call *call = call_new(app, "SetStatus", ARGUMENTS_TEXT, VALUES_NONE);
    if (!call)
        return fail_memory(app);
    int r = call_set_text(call, text);
    if (r >= 0 && mode_of(app) == MODE_LIVE)
        return call_latest(call);
    if (r >= 0 && mode_of(app) == MODE_OUTSIDE)
        notify_status(text);
    call_free(call);
    return r;
}

static int call_with_text(greenroom_app *app, const char *member, const char *text, bool is_async,
                          greenroom_reply_handler_t reply, void *userdata) {
    if (!app)
        return -EINVAL;
    struct call *call = call_new(app, member, ARGUMENTS_TEXT, VALUES_NONE);
    if (!call)
        return fail_memory(app);
    int r = call_set_text(call, text);
    if (r < 0) {
        call_free(call);
        return r;
    }
    return call_finish(call, is_async, reply, userdata);
}

PUBLIC int greenroom_set_summary(greenroom_app *app, const char *text) {
    return call_with_text(app, "SetStateSummary", text, false, NULL, NULL);
}

PUBLIC int greenroom_set_summary_async(greenroom_app *app, const char *text, greenroom_reply_handler_t reply, void *userdata) {
    return call_with_text(app, "SetStateSummary", text, true, reply, userdata);
}

PUBLIC int greenroom_begin_mode(greenroom_app *app, const char *mode) {
    return call_with_text(app, "BeginMode", mode, false, NULL, NULL);
}

PUBLIC int greenroom_end_mode(greenroom_app *app, const char *mode) {
    return call_with_text(app, "EndMode", mode, false, NULL, NULL);
}

PUBLIC int greenroom_begin_scene(greenroom_app *app, const char *scene, const char *role) {
    if (!app)
        return -EINVAL;
    // The second text of such a call is the token of a task, which no role is longer than.
    struct call *call = call_new(app, "BeginScene", ARGUMENTS_TASK, VALUES_NONE);
    if (!call)
        return fail_memory(app);
    int r = call_set_text(call, scene);
    role = role ? role : "window";
    if (r >= 0 && strlen(role) >= sizeof call->token)
        r = fail(app, -EINVAL, "BeginScene: the role is not window, external or panel.");
    if (r < 0) {
        call_free(call);
        return r;
    }
    strcpy(call->token, role);
    return call_finish(call, false, NULL, NULL);
}

PUBLIC int greenroom_end_scene(greenroom_app *app, const char *scene) {
    return call_with_text(app, "EndScene", scene, false, NULL, NULL);
}

PUBLIC int greenroom_heartbeat(greenroom_app *app) {
    if (!app)
        return -EINVAL;
    if (mode_of(app) == MODE_LIVE)
        return report(app, "Heartbeat");
    if (mode_of(app) == MODE_OUTSIDE)
        sd_notify(0, "WATCHDOG=1");
    return 0;
}

PUBLIC int greenroom_set_idle(greenroom_app *app, int idle) {
    if (!app)
        return -EINVAL;
    if (mode_of(app) != MODE_LIVE)
        return 0;
    struct call *call = call_new(app, "SetIdle", ARGUMENTS_FLAG, VALUES_NONE);
    if (!call)
        return fail_memory(app);
    call->flag = idle != 0;
    return call_latest(call);
}
