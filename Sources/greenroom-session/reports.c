#include "session.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[MODE_COUNT] = {"audio", "recording", "call"};
static const char *const service = "org.greenroom";
// Between two reports: a stream that begins and ends all the time costs the daemon little.
static const uint64_t interval = SECOND / 5;
// The most modes in a report (docs/DBUS.md).
enum { MOST_REPORTED = 256 };

static struct shown {
    enum source source;
    uint32_t number;
    pid_t pid;
    unsigned modes;
} all[MOST_STREAMS + MOST_PLAYERS];
static size_t count;
static sd_event_source *timer;
static uint64_t last_report;

// The daemon of the user, and that of the system: an app of either may run as this user.
static struct daemon {
    sd_bus *bus;
    // The report that is not answered yet; one at a time.
    sd_bus_slot *call;
    bool is_outdated;
} daemons[BUS_COUNT];

// Whether the daemon accepts a report about a process: one of the same user. Clients of pipewire-pulse name their process
// themselves.
static bool is_own(pid_t pid) {
    char path[64], line[256];
    if (getuid() == 0) return true;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *file = fopen(path, "re");
    if (!file) return false;
    bool is_own = false;
    while (fgets(line, sizeof line, file)) {
        unsigned uid;
        if (sscanf(line, "Uid: %u", &uid) != 1) continue;
        is_own = uid == getuid();
        break;
    }
    fclose(file);
    return is_own;
}

static void tell(struct daemon *daemon);

static int answered(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
    (void)error;
    struct daemon *daemon = userdata;
    daemon->call = sd_bus_slot_unref(daemon->call);
    const sd_bus_error *refused = sd_bus_message_get_error(reply);
    // A daemon that does not run is notified when it does; a bus that has ended is connected to again.
    if (refused && sd_bus_is_open(daemon->bus) > 0 && !sd_bus_error_has_name(refused, SD_BUS_ERROR_SERVICE_UNKNOWN) &&
        !sd_bus_error_has_name(refused, SD_BUS_ERROR_NAME_HAS_NO_OWNER))
        fprintf(stderr, "greenroom-session: greenroomd: %s\n", refused->message);
    if (daemon->is_outdated) tell(daemon);
    return 0;
}

static void tell(struct daemon *daemon) {
    daemon->is_outdated = daemon->call != NULL;
    if (!daemon->bus || sd_bus_is_open(daemon->bus) <= 0 || daemon->call) return;
    sd_bus_message *call = NULL;
    size_t left = MOST_REPORTED;
    int status = sd_bus_message_new_method_call(
        daemon->bus, &call, service, "/org/greenroom", "org.greenroom.Manager1", "ReportModes");
    if (status >= 0) status = sd_bus_message_set_auto_start(call, 0);
    if (status >= 0) status = sd_bus_message_open_container(call, 'a', "(us)");
    for (size_t i = 0; i < count && status >= 0; i++) {
        if (!is_own(all[i].pid)) continue;
        for (size_t mode = 0; mode < MODE_COUNT && status >= 0 && left > 0; mode++) {
            if (!(all[i].modes & 1u << mode)) continue;
            status = sd_bus_message_append(call, "(us)", (uint32_t)all[i].pid, names[mode]);
            left--;
        }
    }
    if (status >= 0) status = sd_bus_message_close_container(call);
    if (status >= 0) status = sd_bus_call_async(daemon->bus, &daemon->call, call, answered, daemon, 0);
    sd_bus_message_unref(call);
    if (status < 0) fprintf(stderr, "greenroom-session: cannot call greenroomd: %s\n", strerror(-status));
}

static int tell_all(sd_event_source *source, uint64_t at, void *userdata) {
    (void)source, (void)at, (void)userdata;
    last_report = now();
    if (is_verbose) {
        printf("Shown:");
        for (size_t i = 0; i < count; i++)
            for (size_t mode = 0; mode < MODE_COUNT; mode++)
                if (all[i].modes & 1u << mode) printf(" %d %s", all[i].pid, names[mode]);
        puts(count ? "" : " nothing");
        fflush(stdout);
    }
    for (size_t i = 0; i < BUS_COUNT; i++) tell(&daemons[i]);
    return 0;
}

static int report_answered(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
    (void)error;
    sd_bus_slot **slot = userdata;
    *slot = sd_bus_slot_unref(*slot);
    const sd_bus_error *refused = sd_bus_message_get_error(reply);
    if (refused && is_verbose) fprintf(stderr, "greenroom-session: greenroomd: %s\n", refused->message);
    return 0;
}

void report(sd_bus *bus, sd_bus_slot **slot, const char *method, const char *types, ...) {
    sd_bus_message *call = NULL;
    va_list values;
    *slot = sd_bus_slot_unref(*slot);
    if (!bus) return;
    int status = sd_bus_message_new_method_call(bus, &call, service, "/org/greenroom", "org.greenroom.Manager1", method);
    if (status >= 0) status = sd_bus_message_set_auto_start(call, 0);
    va_start(values, types);
    if (status >= 0) status = sd_bus_message_appendv(call, types, values);
    va_end(values);
    if (status >= 0) status = sd_bus_call_async(bus, slot, call, report_answered, slot, 0);
    sd_bus_message_unref(call);
}

// What this turn of the loop changes is reported together.
static void changed(void) {
    uint64_t due = last_report + interval > now() ? last_report + interval : now();
    sd_event_source_set_time(timer, due);
    sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

// A daemon has begun: it knows nothing yet. What an earlier one knew ended with the connection.
static int owner_changed(sd_bus_message *message, void *userdata, sd_bus_error *error) {
    (void)error;
    const char *name, *old, *new;
    if (sd_bus_message_read(message, "sss", &name, &old, &new) < 0) return 0;
    if (*new) tell(userdata);
    wanted_ask((enum bus)((struct daemon *)userdata - daemons));
    return 0;
}

int reports_begin(void) {
    int status = sd_event_add_time(loop, &timer, CLOCK_MONOTONIC, 0, 1, tell_all, NULL);
    return status < 0 ? status : sd_event_source_set_enabled(timer, SD_EVENT_OFF);
}

void reports_connected(enum bus which, sd_bus *bus) {
    struct daemon *daemon = &daemons[which];
    daemon->bus = bus;
    // Without the signals the daemon is notified at the next change.
    sd_bus_add_match_async(bus, NULL,
        "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
        "arg0='org.greenroom'", owner_changed, NULL, daemon);
    tell(daemon);
}

void reports_lost(enum bus which) {
    sd_bus_slot_unref(daemons[which].call);
    daemons[which] = (struct daemon){0};
}

void reports_set(enum source source, uint32_t number, pid_t pid, unsigned modes) {
    size_t i = 0;
    while (i < count && (all[i].source != source || all[i].number != number)) i++;
    if (pid <= 0 || modes == 0) {
        if (i == count) return;
        all[i] = all[--count];
        return changed();
    }
    if (i < count && all[i].pid == pid && all[i].modes == modes) return;
    if (i == sizeof all / sizeof *all) return;
    if (i == count) count++;
    all[i] = (struct shown){source, number, pid, modes};
    changed();
}
