#include "session.h"
#include <stdio.h>
#include <string.h>

// States that other programs of the session have, for daemons that want to know when they change (L33). What is reported of a state is a digest: it
// changes whenever the state does, and is the same again when that is undone. A state is read only while an app of this user is notified of its
// kind, and its service is never started for that.
static struct state {
    // What --verbose prints, and the daemon's method.
    const char *const name, *const report;
    // The call that reads it: `types` are those of an argument that is empty, or NULL.
    const char *const service, *const path, *const interface, *const method, *const types;
    // The signals after which it is read again.
    const char *const signals[3];
    // Between two readings: a theme that changes many settings is one change.
    const uint64_t interval;
    struct daemon {
        bool is_wanted;
        sd_bus_slot *report_call;
    } daemons[BUS_COUNT];
    // None: the service is not watched.
    sd_bus_slot *matches[3];
    sd_bus_slot *read_call;
    // A change came while it was read.
    bool is_outdated;
    sd_event_source *timer;
    uint64_t last_reading;
} settings = {
    // The settings of the desktop, such as the color scheme, as the portal shows them.
    .name = "Settings",
    .report = "ReportSettings",
    .service = "org.freedesktop.portal.Desktop",
    .path = "/org/freedesktop/portal/desktop",
    .interface = "org.freedesktop.portal.Settings",
    .method = "ReadAll",
    .types = "as",
    .signals = {
        "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
        "arg0='org.freedesktop.portal.Desktop'",
        "type='signal',sender='org.freedesktop.portal.Desktop',interface='org.freedesktop.portal.Settings',"
        "member='SettingChanged',path='/org/freedesktop/portal/desktop'"},
    .interval = SECOND / 5,
}, accounts = {
    // The accounts of GNOME Online Accounts: objects with properties, which are neither passwords nor tokens.
    .name = "Accounts",
    .report = "ReportAccounts",
    .service = "org.gnome.OnlineAccounts",
    .path = "/org/gnome/OnlineAccounts",
    .interface = "org.freedesktop.DBus.ObjectManager",
    .method = "GetManagedObjects",
    .signals = {
        "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
        "arg0='org.gnome.OnlineAccounts'",
        "type='signal',sender='org.gnome.OnlineAccounts',interface='org.freedesktop.DBus.ObjectManager',"
        "path='/org/gnome/OnlineAccounts'",
        "type='signal',sender='org.gnome.OnlineAccounts',interface='org.freedesktop.DBus.Properties',"
        "member='PropertiesChanged',path_namespace='/org/gnome/OnlineAccounts'"},
    .interval = SECOND,
};
static struct state *const states[] = {&settings, &accounts};
enum { STATE_COUNT = sizeof states / sizeof *states };

static sd_bus *buses[BUS_COUNT];

// MARK: A digest

static const uint64_t seed = UINT64_C(0xcbf29ce484222325);

// FNV-1a
static void mix(uint64_t *sum, const void *bytes, size_t size) {
    for (const unsigned char *next = bytes; size > 0; size--) *sum = (*sum ^ *next++) * UINT64_C(0x100000001b3);
}

static size_t size_of(char type) {
    switch (type) {
    case 'y': return 1;
    case 'n': case 'q': return 2;
    case 'x': case 't': case 'd': return 8;
    default: return 4;
    }
}

// Adds the rest of a container. The order of a dictionary says nothing.
static bool digest(sd_bus_message *message, uint64_t *sum) {
    for (;;) {
        char type;
        const char *contents;
        int status = sd_bus_message_peek_type(message, &type, &contents);
        if (status <= 0) return status == 0;
        if (strchr("arve(", type)) {
            uint64_t inner = seed;
            if (sd_bus_message_enter_container(message, type, contents) < 0 || !digest(message, &inner) ||
                sd_bus_message_exit_container(message) < 0)
                return false;
            if (type == 'e') *sum += inner;
            else mix(sum, &inner, sizeof inner);
            continue;
        }
        union { uint64_t number; const char *text; } value = {0};
        if (sd_bus_message_read_basic(message, type, &value) < 0) return false;
        if (strchr("sog", type)) mix(sum, value.text, strlen(value.text) + 1);
        else mix(sum, &value, size_of(type));
    }
}

// MARK: Reports

static void read_soon(struct state *state) {
    state->is_outdated = state->read_call != NULL;
    if (state->is_outdated) return;
    uint64_t due = state->last_reading + state->interval > now() ? state->last_reading + state->interval : now();
    sd_event_source_set_time(state->timer, due);
    sd_event_source_set_enabled(state->timer, SD_EVENT_ONESHOT);
}

static int has_read(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
    (void)error;
    struct state *state = userdata;
    uint64_t sum = seed;
    state->read_call = sd_bus_slot_unref(state->read_call);
    // A service that does not run, or does not answer, has nothing to say.
    if (!sd_bus_message_is_method_error(reply, NULL) && digest(reply, &sum)) {
        char text[32];
        snprintf(text, sizeof text, "%016llx", (unsigned long long)sum);
        if (is_verbose) printf("%s: %s\n", state->name, text), fflush(stdout);
        for (enum bus which = 0; which < BUS_COUNT; which++)
            if (state->daemons[which].is_wanted) report(buses[which], &state->daemons[which].report_call, state->report, "s", text);
    }
    if (state->is_outdated) read_soon(state);
    return 0;
}

static int read_state(sd_event_source *source, uint64_t at, void *userdata) {
    (void)source, (void)at;
    struct state *state = userdata;
    sd_bus *bus = buses[BUS_SESSION];
    sd_bus_message *call = NULL;
    if (!bus || !state->matches[0] || state->read_call) return 0;
    state->last_reading = now();
    int status = sd_bus_message_new_method_call(bus, &call, state->service, state->path, state->interface, state->method);
    if (status >= 0) status = sd_bus_message_set_auto_start(call, 0);
    if (status >= 0 && state->types) status = sd_bus_message_append(call, state->types, 0);
    if (status >= 0) status = sd_bus_call_async(bus, &state->read_call, call, has_read, state, 0);
    sd_bus_message_unref(call);
    return 0;
}

// MARK: The service

static int changed(sd_bus_message *message, void *userdata, sd_bus_error *error) {
    (void)message, (void)error;
    read_soon(userdata);
    return 0;
}

// The service is watched while a daemon wants to know, on the bus of the session.
static void follow(struct state *state) {
    sd_bus *bus = buses[BUS_SESSION];
    size_t count = sizeof state->signals / sizeof *state->signals;
    if (!bus || !(state->daemons[BUS_SESSION].is_wanted || state->daemons[BUS_SYSTEM].is_wanted)) {
        for (size_t i = 0; i < count; i++) state->matches[i] = sd_bus_slot_unref(state->matches[i]);
        state->read_call = sd_bus_slot_unref(state->read_call);
        state->is_outdated = false;
        sd_event_source_set_enabled(state->timer, SD_EVENT_OFF);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (!state->matches[i] && state->signals[i])
            sd_bus_add_match_async(bus, &state->matches[i], state->signals[i], changed, NULL, state);
    read_soon(state);
}

// MARK: The daemons

int digests_begin(void) {
    int status = 0;
    for (size_t i = 0; i < STATE_COUNT && status >= 0; i++) {
        status = sd_event_add_time(loop, &states[i]->timer, CLOCK_MONOTONIC, 0, 1, read_state, states[i]);
        if (status >= 0) status = sd_event_source_set_enabled(states[i]->timer, SD_EVENT_OFF);
    }
    return status;
}

void digests_connected(enum bus which, sd_bus *bus) {
    buses[which] = bus;
    for (size_t i = 0; i < STATE_COUNT && which == BUS_SESSION; i++) follow(states[i]);
}

void digests_lost(enum bus which) {
    buses[which] = NULL;
    for (size_t i = 0; i < STATE_COUNT; i++) {
        sd_bus_slot_unref(states[i]->daemons[which].report_call);
        states[i]->daemons[which] = (struct daemon){0};
        follow(states[i]);
    }
}

static void set_wanted(struct state *state, enum bus which, bool is_wanted) {
    bool was_wanted = state->daemons[which].is_wanted;
    state->daemons[which].is_wanted = is_wanted;
    if (was_wanted || is_wanted) follow(state);
}

void settings_wanted(enum bus which, bool is_wanted) { set_wanted(&settings, which, is_wanted); }

void accounts_wanted(enum bus which, bool is_wanted) { set_wanted(&accounts, which, is_wanted); }
