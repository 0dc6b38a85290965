#include "session.h"
#include <stdio.h>
#include <string.h>

// The settings of the desktop, such as the color scheme, as the portal shows them (org.freedesktop.portal.Settings). What is reported of them
// is a digest: it changes whenever one of them does, and is the same again when that is undone. They are read only while an app of this
// user is notified of the kind `settings` (L33).
static const char *const portal = "org.freedesktop.portal.Desktop";
static const char *const portal_path = "/org/freedesktop/portal/desktop";
static const char *const portal_interface = "org.freedesktop.portal.Settings";
static const char *const service = "org.greenroom";
static const char *const manager_path = "/org/greenroom";
static const char *const manager = "org.greenroom.Manager1";
// Between two readings: a theme that changes many settings is one change.
static const uint64_t interval = SECOND / 5;

static struct daemon {
    sd_bus *bus;
    bool is_wanted;
    sd_bus_slot *report_call;
} daemons[BUS_COUNT];

static sd_bus_slot *changed_match, *owner_match, *read_call;
// A change came while the settings were read.
static bool is_outdated;
static sd_event_source *timer;
static uint64_t last_reading;

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

static int reported(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
    (void)error;
    struct daemon *daemon = userdata;
    daemon->report_call = sd_bus_slot_unref(daemon->report_call);
    const sd_bus_error *refused = sd_bus_message_get_error(reply);
    if (refused && is_verbose) fprintf(stderr, "greenroom-session: greenroomd: %s\n", refused->message);
    return 0;
}

static void report(struct daemon *daemon, const char *text) {
    sd_bus_message *call = NULL;
    // A report that is not answered yet is replaced: the daemon has what it is sent last.
    daemon->report_call = sd_bus_slot_unref(daemon->report_call);
    int status = sd_bus_message_new_method_call(daemon->bus, &call, service, manager_path, manager, "ReportSettings");
    if (status >= 0) status = sd_bus_message_set_auto_start(call, 0);
    if (status >= 0) status = sd_bus_message_append(call, "s", text);
    if (status >= 0) status = sd_bus_call_async(daemon->bus, &daemon->report_call, call, reported, daemon, 0);
    sd_bus_message_unref(call);
}

static void read_soon(void) {
    is_outdated = read_call != NULL;
    if (is_outdated) return;
    uint64_t due = last_reading + interval > now() ? last_reading + interval : now();
    sd_event_source_set_time(timer, due);
    sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

static int settings_read(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
    (void)userdata, (void)error;
    uint64_t sum = seed;
    read_call = sd_bus_slot_unref(read_call);
    // a{sa{sv}}: a portal that does not answer, or has no settings, has nothing to say.
    if (!sd_bus_message_is_method_error(reply, NULL) && digest(reply, &sum)) {
        char text[32];
        snprintf(text, sizeof text, "%016llx", (unsigned long long)sum);
        if (is_verbose) printf("Settings: %s\n", text), fflush(stdout);
        for (size_t i = 0; i < BUS_COUNT; i++)
            if (daemons[i].is_wanted) report(&daemons[i], text);
    }
    if (is_outdated) read_soon();
    return 0;
}

static int read_settings(sd_event_source *source, uint64_t at, void *userdata) {
    (void)source, (void)at, (void)userdata;
    sd_bus *bus = daemons[BUS_SESSION].bus;
    sd_bus_message *call = NULL;
    if (!bus || !changed_match || read_call) return 0;
    last_reading = now();
    int status = sd_bus_message_new_method_call(bus, &call, portal, portal_path, portal_interface, "ReadAll");
    if (status >= 0) status = sd_bus_message_set_auto_start(call, 0);
    if (status >= 0) status = sd_bus_message_append(call, "as", 0);
    if (status >= 0) status = sd_bus_call_async(bus, &read_call, call, settings_read, NULL, 0);
    sd_bus_message_unref(call);
    return 0;
}

// MARK: The portal

static int changed(sd_bus_message *message, void *userdata, sd_bus_error *error) {
    (void)message, (void)userdata, (void)error;
    read_soon();
    return 0;
}

// The portal is watched while a daemon wants to know, on the bus of the session.
static void follow(void) {
    sd_bus *bus = daemons[BUS_SESSION].bus;
    bool is_wanted = bus && (daemons[BUS_SESSION].is_wanted || daemons[BUS_SYSTEM].is_wanted);
    if (!is_wanted) {
        changed_match = sd_bus_slot_unref(changed_match);
        owner_match = sd_bus_slot_unref(owner_match);
        read_call = sd_bus_slot_unref(read_call);
        is_outdated = false;
        sd_event_source_set_enabled(timer, SD_EVENT_OFF);
        return;
    }
    if (!changed_match) {
        sd_bus_add_match_async(bus, &changed_match,
            "type='signal',sender='org.freedesktop.portal.Desktop',interface='org.freedesktop.portal.Settings',"
            "member='SettingChanged',path='/org/freedesktop/portal/desktop'", changed, NULL, NULL);
        sd_bus_add_match_async(bus, &owner_match,
            "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
            "arg0='org.freedesktop.portal.Desktop'", changed, NULL, NULL);
    }
    read_soon();
}

// MARK: The daemons

int settings_begin(void) {
    int status = sd_event_add_time(loop, &timer, CLOCK_MONOTONIC, 0, 1, read_settings, NULL);
    return status < 0 ? status : sd_event_source_set_enabled(timer, SD_EVENT_OFF);
}

void settings_connected(enum bus which, sd_bus *bus) {
    daemons[which].bus = bus;
    if (which == BUS_SESSION) follow();
}

void settings_wanted(enum bus which, bool is_wanted) {
    bool was_wanted = daemons[which].is_wanted;
    daemons[which].is_wanted = is_wanted;
    if (was_wanted || is_wanted) follow();
}

void settings_lost(enum bus which) {
    sd_bus_slot_unref(daemons[which].report_call);
    daemons[which] = (struct daemon){0};
    follow();
}
