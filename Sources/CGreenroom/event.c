/* Events: read from signals, handled in order, answered once. */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

/// The kinds, in the order of their names.
static const struct {
    const char *name;
    greenroom_kind kind;
    bool is_answered;
} kinds[] = {
    {"didBecomeActive", GREENROOM_DID_BECOME_ACTIVE, false},
    {"didDiscardScenes", GREENROOM_DID_DISCARD_SCENES, false},
    {"didEnterBackground", GREENROOM_DID_ENTER_BACKGROUND, true},
    {"didResume", GREENROOM_DID_RESUME, false},
    {"memoryWarning", GREENROOM_MEMORY_WARNING, false},
    {"notification", GREENROOM_NOTIFICATION, false},
    {"openURL", GREENROOM_OPEN_URL, false},
    {"push", GREENROOM_PUSH, true},
    {"scene", GREENROOM_SCENE, false},
    {"takeSceneSnapshot", GREENROOM_TAKE_SCENE_SNAPSHOT, true},
    {"takeSnapshot", GREENROOM_TAKE_SNAPSHOT, true},
    {"tasksExpiring", GREENROOM_TASKS_EXPIRING, false},
    {"wake", GREENROOM_WAKE, true},
    {"willEnterForeground", GREENROOM_WILL_ENTER_FOREGROUND, false},
    {"willResignActive", GREENROOM_WILL_RESIGN_ACTIVE, false},
    {"willSuspend", GREENROOM_WILL_SUSPEND, false},
    {"willTerminate", GREENROOM_WILL_TERMINATE, true},
    {"withdraw", GREENROOM_WITHDRAW, true},
};
enum { COUNT = sizeof kinds / sizeof *kinds };
_Static_assert(COUNT + 1 == KINDS, "kinds are numbered from 1");

PUBLIC const char *greenroom_kind_to_string(greenroom_kind kind) {
    for (int i = 0; i < COUNT; i++)
        if (kinds[i].kind == kind)
            return kinds[i].name;
    return NULL;
}

PUBLIC int greenroom_kind_from_string(const char *name) {
    for (int i = 0; name && i < COUNT; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return (int)kinds[i].kind;
    return -EINVAL;
}

static bool is_answered(greenroom_kind kind) {
    for (int i = 0; i < COUNT; i++)
        if (kinds[i].kind == kind)
            return kinds[i].is_answered;
    return false;
}

unsigned event_handled_kinds(greenroom_app *app) {
    // Tasks learn that they expire with or without a handler.
    unsigned handled = 1u << GREENROOM_TASKS_EXPIRING;
    for (unsigned kind = 1; kind < KINDS; kind++)
        if (app->handlers[kind].function)
            handled |= 1u << kind;
    return handled;
}

void event_handled_names(greenroom_app *app, const char **names) {
    unsigned handled = event_handled_kinds(app);
    for (int i = 0; i < COUNT; i++)
        if (handled & 1u << kinds[i].kind)
            *names++ = kinds[i].name;
    *names = NULL;
}

// MARK: The queue

void event_free(struct event *event) {
    if (!event)
        return;
    greenroom_event *public = &event->public;
    free((char *)public->url);
    free((char *)public->cause);
    free((char *)public->reason);
    free((char *)public->level);
    free((char *)public->payload);
    free((char *)public->notification);
    free((char *)public->scene);
    free((char *)public->notice);
    record_free_texts(event->names);
    free(event);
}

static void queue(greenroom_app *app, struct event *event) {
    *app->events_end = event;
    app->events_end = &event->next;
    app->n_events++;
    app->event_bytes += event->size;
}

struct event *event_take(greenroom_app *app) {
    struct event *event = app->events;
    if (!event)
        return NULL;
    app->events = event->next;
    if (!app->events)
        app->events_end = &app->events;
    app->n_events--;
    app->event_bytes -= event->size;
    return event;
}

bool event_queue_is_full(greenroom_app *app) { return app->n_events >= MAX_EVENTS || app->event_bytes >= MAX_EVENT_BYTES; }

int event_local(greenroom_app *app, greenroom_kind kind, const char *text) {
    struct event *event = calloc(1, sizeof *event);
    char *copy = strdup(text);
    if (!event || !copy) {
        free(event);
        free(copy);
        return fail_memory(app);
    }
    event->size = sizeof *event + strlen(text);
    event->public.kind = kind;
    if (kind == GREENROOM_WILL_TERMINATE) {
        event->public.reason = copy;
        event->public.remaining_usec = GREENROOM_UNLIMITED;
    } else
        event->public.cause = copy;
    queue(app, event);
    loop_arm(app);
    return 0;
}

// MARK: Reading

/// Reads a text of an event. The fields are constant for handlers only.
static int read_text(sd_bus_message *message, const char *type, const char **field) {
    return record_read_text(message, type, (char **)field);
}

static int read_detail(sd_bus_message *message, const char *key, const char *type, void *userdata) {
    struct event *event = userdata;
    greenroom_event *public = &event->public;
    greenroom_kind kind = public->kind;
    bool has_cause = kind == GREENROOM_DID_BECOME_ACTIVE || kind == GREENROOM_WILL_RESIGN_ACTIVE;
    bool has_reason = kind == GREENROOM_WILL_TERMINATE || kind == GREENROOM_WAKE || kind == GREENROOM_SCENE;
    bool has_payload = kind == GREENROOM_PUSH || kind == GREENROOM_NOTIFICATION;
    bool has_scene = kind == GREENROOM_SCENE || kind == GREENROOM_OPEN_URL || kind == GREENROOM_TAKE_SCENE_SNAPSHOT;
    if (kind == GREENROOM_OPEN_URL && strcmp(key, "url") == 0)
        return read_text(message, type, &public->url);
    if (has_cause && strcmp(key, "cause") == 0)
        return read_text(message, type, &public->cause);
    if (has_reason && strcmp(key, "reason") == 0)
        return read_text(message, type, &public->reason);
    if (kind == GREENROOM_MEMORY_WARNING && strcmp(key, "level") == 0)
        return read_text(message, type, &public->level);
    if (has_payload && strcmp(key, "payload") == 0)
        return read_text(message, type, &public->payload);
    if (has_scene && strcmp(key, "scene") == 0)
        return read_text(message, type, &public->scene);
    if (kind == GREENROOM_SCENE && strcmp(key, "notice") == 0)
        return read_text(message, type, &public->notice);
    if (kind == GREENROOM_NOTIFICATION && strcmp(key, "kind") == 0)
        return read_text(message, type, &public->notification);
    if ((kind == GREENROOM_PUSH || kind == GREENROOM_WAKE) && strcmp(key, "id") == 0)
        return record_read_number(message, type, &public->id);
    if (kind == GREENROOM_WILL_TERMINATE ? strcmp(key, "deadlineSeconds") == 0 : strcmp(key, "remainingSeconds") == 0)
        return record_read_span(message, type, &public->remaining_usec);
    if (kind == GREENROOM_DID_RESUME && strcmp(key, "suspendedSeconds") == 0)
        return record_read_span(message, type, &public->suspended_usec);
    const char *names = kind == GREENROOM_TASKS_EXPIRING       ? "names"
                        : kind == GREENROOM_DID_RESUME         ? "changed"
                        : kind == GREENROOM_DID_DISCARD_SCENES ? "scenes"
                                                               : NULL;
    if (names && strcmp(key, names) == 0)
        return record_read_texts(message, type, &event->names, &public->n_names);
    return 0;
}

/// Gives a text that is missing its default.
static int complete_text(const char **field, const char *otherwise) {
    if (!*field)
        *field = strdup(otherwise);
    return *field ? 0 : -ENOMEM;
}

static int complete(struct event *event) {
    greenroom_event *public = &event->public;
    switch (public->kind) {
    case GREENROOM_OPEN_URL:
        return complete_text(&public->url, "") < 0 ? -ENOMEM : complete_text(&public->scene, "main");
    case GREENROOM_SCENE:
        if (complete_text(&public->scene, "main") < 0 || complete_text(&public->reason, "") < 0)
            return -ENOMEM;
        return complete_text(&public->notice, "");
    case GREENROOM_TAKE_SCENE_SNAPSHOT:
        return complete_text(&public->scene, "main");
    case GREENROOM_DID_BECOME_ACTIVE:
        return complete_text(&public->cause, "launch");
    case GREENROOM_WILL_RESIGN_ACTIVE:
        return complete_text(&public->cause, "background");
    case GREENROOM_WILL_TERMINATE:
    case GREENROOM_WAKE:
        return complete_text(&public->reason, "");
    case GREENROOM_MEMORY_WARNING:
        return complete_text(&public->level, "warning");
    case GREENROOM_PUSH:
        return complete_text(&public->payload, "");
    case GREENROOM_NOTIFICATION:
        return complete_text(&public->notification, "") < 0 ? -ENOMEM : complete_text(&public->payload, "");
    case GREENROOM_TASKS_EXPIRING:
    case GREENROOM_DID_RESUME:
    case GREENROOM_DID_DISCARD_SCENES:
        if (!event->names)
            event->names = calloc(1, sizeof *event->names);
        return event->names ? 0 : -ENOMEM;
    case GREENROOM_WILL_ENTER_FOREGROUND:
    case GREENROOM_DID_ENTER_BACKGROUND:
    case GREENROOM_WILL_SUSPEND:
    case GREENROOM_WITHDRAW:
    case GREENROOM_TAKE_SNAPSHOT:
        break;
    }
    return 0;
}

static size_t length_of(const char *text) { return text ? strlen(text) : 0; }

static void measure(struct event *event) {
    const greenroom_event *public = &event->public;
    event->size = sizeof *event + length_of(public->url) + length_of(public->cause) + length_of(public->reason) +
        length_of(public->level) + length_of(public->payload) + length_of(public->notification) + length_of(public->scene) +
        length_of(public->notice);
    for (char **each = event->names; each && *each; each++)
        event->size += strlen(*each);
}

static int read_event(sd_bus_message *message, uint64_t serial, greenroom_kind kind, struct event **ret) {
    struct event *event = calloc(1, sizeof *event);
    if (!event)
        return -ENOMEM;
    event->public.serial = serial;
    event->public.kind = kind;
    if (kind == GREENROOM_DID_ENTER_BACKGROUND || kind == GREENROOM_WILL_TERMINATE)
        event->public.remaining_usec = GREENROOM_UNLIMITED;
    int r = record_each(message, read_detail, event);
    r = r < 0 ? r : complete(event);
    if (r < 0) {
        event_free(event);
        return r;
    }
    event->public.names = (const char *const *)event->names;
    measure(event);
    *ret = event;
    return 0;
}

int event_receive(sd_bus_message *message, void *userdata, sd_bus_error *error) {
    (void)error;
    greenroom_app *app = userdata;
    if (sd_bus_message_has_signature(message, "tsa{sv}") <= 0) {
        const char *signature = sd_bus_message_get_signature(message, 1);
        warn(app, LOG_WARNING, "an event with the signature '%s' is ignored; expected 'tsa{sv}'", signature ? signature : "");
        return 0;
    }
    uint64_t serial = 0;
    const char *name = "";
    int r = sd_bus_message_read(message, "ts", &serial, &name);
    int kind = r < 0 ? r : greenroom_kind_from_string(name);
    // Events that are being handled, or whose answer is on its way, are not handled again. A newer daemon may send unknown kinds.
    if (r >= 0 && (serial <= app->last_serial || kind < 0))
        return 0;
    struct event *event = NULL;
    r = r < 0 ? r : read_event(message, serial, (greenroom_kind)kind, &event);
    // greenroomd sends it again over the next connection.
    if (r == -ENOMEM)
        app->lacks_memory = true;
    else if (r < 0)
        warn(app, LOG_WARNING, "event %llu is ignored: %s", (unsigned long long)serial, strerror(-r));
    if (r < 0)
        return 0;
    app->last_serial = serial;
    if (event->size > MAX_EVENT_TEXT) {
        warn(app, LOG_WARNING, "event %llu, %s, is ignored: it has %zu bytes", (unsigned long long)serial, name, event->size);
        event_free(event);
        return 0;
    }
    if (event->public.kind == GREENROOM_TASKS_EXPIRING)
        task_mark_expiring(app, event->public.names);
    queue(app, event);
    return 0;
}

// MARK: Handling

static const char *result_name(int result) {
    return result == GREENROOM_NEW_DATA ? "new-data" : result == GREENROOM_NO_DATA ? "no-data" : "failed";
}

/// Answers an event whose handling is complete.
static int finish(greenroom_app *app, greenroom_kind kind, uint64_t serial, int result) {
    if (kind == GREENROOM_WILL_TERMINATE)
        app->is_ended = true;
    if (!is_answered(kind) || serial == 0 || mode_of(app) != MODE_LIVE)
        return 0;
    struct call *call = call_new(app, "Answer", ARGUMENTS_ANSWER, VALUES_NONE);
    if (!call)
        return fail_memory(app);
    call->serial = serial;
    call->result = kind == GREENROOM_PUSH || kind == GREENROOM_WAKE ? result_name(result) : NULL;
    call_must(call);
    return 0;
}

static int answer_later(greenroom_app *app, const greenroom_event *event) {
    if (!is_answered(event->kind))
        return 0;
    struct later *later = malloc(sizeof *later);
    if (!later)
        return fail_memory(app);
    *later = (struct later){.next = app->later, .serial = event->serial, .kind = event->kind};
    app->later = later;
    return 0;
}

int event_handle(greenroom_app *app, const greenroom_event *event) {
    struct handler handler = app->handlers[event->kind];
    int result = handler.function ? handler.function(app, event, handler.userdata) : GREENROOM_FAILED;
    if (result == GREENROOM_LATER)
        return answer_later(app, event);
    if (result < 0)
        warn(app, LOG_ERR, "the handler of %s failed: %s", greenroom_kind_to_string(event->kind), strerror(-result));
    return finish(app, event->kind, event->serial, result);
}

PUBLIC int greenroom_answer(greenroom_app *app, uint64_t serial, int result) {
    if (!app)
        return -EINVAL;
    if (mode_of(app) == MODE_CHILD)
        return fail_child(app, "greenroom_answer");
    if (result < GREENROOM_NEW_DATA || result > GREENROOM_FAILED)
        return fail(app, -EINVAL, "greenroom_answer: there is no result %d.", result);
    for (struct later **link = &app->later; *link; link = &(*link)->next) {
        struct later *later = *link;
        if (later->serial != serial)
            continue;
        greenroom_kind kind = later->kind;
        *link = later->next;
        free(later);
        int r = finish(app, kind, serial, result);
        loop_arm(app);
        return r;
    }
    return fail(app, -ENOENT, "No event with the serial %llu waits for its answer.", (unsigned long long)serial);
}
