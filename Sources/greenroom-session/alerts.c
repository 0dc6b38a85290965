#include "session.h"
#include <stdio.h>
#include <string.h>

// Whether a notification of critical urgency is shown (Desktop Notifications Specification, "Urgency Levels"), for daemons that want to
// know (L13). A monitor (D-Bus Specification, org.freedesktop.DBus.Monitoring) sees the calls `Notify` of other programs, the answers with
// the numbers of the notifications, and the signals `NotificationClosed`. It needs a connection of its own, which exists only while a
// daemon wants to know. Of a notification nothing but its urgency and its number is looked at.
static const char *const interface = "org.freedesktop.Notifications";
static const char *const rules[] = {
    "type='method_call',interface='org.freedesktop.Notifications',member='Notify',path='/org/freedesktop/Notifications'",
    "type='method_return',sender='org.freedesktop.Notifications'",
    "type='signal',sender='org.freedesktop.Notifications',interface='org.freedesktop.Notifications',member='NotificationClosed',"
    "path='/org/freedesktop/Notifications'",
    "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
    "arg0='org.freedesktop.Notifications'",
};
// The most notifications that are followed, and calls without an answer: a desktop shows a handful. Of more the first
// notifications and the last calls are.
enum { MOST_ALERTS = 64 };
// The most messages in a second. With more the connection is closed, and opened again later.
enum { MOST_MESSAGES = 1000 };
// The longest name of a bus (D-Bus Specification, "Valid Names").
enum { LONGEST_NAME = 255 };
// Between two reports: a program that shows and closes notifications all the time costs the daemon little.
static const uint64_t interval = SECOND / 5;

static struct daemon {
    sd_bus *bus;
    bool is_wanted, is_notified;
    sd_bus_slot *call;
} daemons[BUS_COUNT];

static sd_bus *monitor;
static sd_bus_slot *monitor_call;
static struct retry retry;
static sd_event_source *timer;
static uint64_t last_report, second_began;
static unsigned messages;

// Critical notifications whose numbers are not known yet, by the call: its sender and its serial.
static struct pending {
    char sender[LONGEST_NAME + 1];
    uint64_t cookie;
} pending[MOST_ALERTS];
static size_t next_pending;
static uint32_t shown[MOST_ALERTS];
static size_t count;

// MARK: Reports

static void report_to(struct daemon *daemon) {
    bool is_shown = count > 0;
    if (!daemon->is_wanted || daemon->is_notified == is_shown) return;
    daemon->is_notified = is_shown;
    report(daemon->bus, &daemon->call, "ReportAlert", "b", is_shown);
}

static int report_all(sd_event_source *source, uint64_t at, void *userdata) {
    (void)source, (void)at, (void)userdata;
    last_report = now();
    if (is_verbose) printf("Critical notifications: %zu\n", count), fflush(stdout);
    for (size_t i = 0; i < BUS_COUNT; i++) report_to(&daemons[i]);
    return 0;
}

static void changed(void) {
    uint64_t due = last_report + interval > now() ? last_report + interval : now();
    sd_event_source_set_time(timer, due);
    sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

// MARK: Notifications

static void remove_all(void) {
    memset(pending, 0, sizeof pending);
    if (count == 0) return;
    count = 0;
    changed();
}

static void set(uint32_t number, bool is_shown) {
    size_t i = 0;
    while (i < count && shown[i] != number) i++;
    if ((i < count) == is_shown || (is_shown && count == MOST_ALERTS)) return;
    if (is_shown) shown[count++] = number;
    else shown[i] = shown[--count];
    changed();
}

// Notify(s app_name, u replaces_id, s app_icon, s summary, s body, as actions, a{sv} hints, i expire_timeout)
static void notify_called(sd_bus_message *message) {
    uint32_t replaced;
    uint8_t urgency = 1;
    uint64_t cookie;
    const char *name, *type, *sender = sd_bus_message_get_sender(message);
    if (!sender || strlen(sender) > LONGEST_NAME || sd_bus_message_has_signature(message, "susssasa{sv}i") <= 0 ||
        sd_bus_message_read(message, "su", NULL, &replaced) < 0 || sd_bus_message_skip(message, "sssas") < 0 ||
        sd_bus_message_enter_container(message, 'a', "{sv}") < 0)
        return;
    while (sd_bus_message_enter_container(message, 'e', "sv") > 0) {
        if (sd_bus_message_read(message, "s", &name) < 0 || sd_bus_message_peek_type(message, NULL, &type) < 0) return;
        bool is_urgency = !strcmp(name, "urgency") && !strcmp(type, "y");
        if ((is_urgency ? sd_bus_message_read(message, "v", "y", &urgency) : sd_bus_message_skip(message, "v")) < 0 ||
            sd_bus_message_exit_container(message) < 0)
            return;
    }
    if (urgency != 2) return set(replaced, false);
    if (sd_bus_message_get_cookie(message, &cookie) < 0) return;
    struct pending *call = &pending[next_pending++ % MOST_ALERTS];
    strcpy(call->sender, sender);
    call->cookie = cookie;
}

static void notify_answered(sd_bus_message *message) {
    uint64_t cookie;
    uint32_t number;
    const char *destination = sd_bus_message_get_destination(message);
    if (!destination || sd_bus_message_get_reply_cookie(message, &cookie) < 0) return;
    for (size_t i = 0; i < MOST_ALERTS; i++) {
        if (pending[i].cookie != cookie || strcmp(pending[i].sender, destination)) continue;
        pending[i] = (struct pending){0};
        if (sd_bus_message_read(message, "u", &number) >= 0) set(number, true);
        return;
    }
}

// MARK: The monitor

// Returns whether there were too many messages in this second.
static bool floods(void) {
    if (now() - second_began >= SECOND) second_began = now(), messages = 0;
    return ++messages > MOST_MESSAGES;
}

// Handles every message: a monitor answers none.
static int seen(sd_bus_message *message, void *userdata, sd_bus_error *error) {
    (void)userdata, (void)error;
    uint8_t type = 0;
    uint32_t number;
    bool is_over = sd_bus_message_is_signal(message, "org.freedesktop.DBus.Local", "Disconnected") > 0;
    if (is_over || floods()) {
        if (!is_over) fputs("greenroom-session: too many notifications; they are watched again later\n", stderr);
        // The connection is freed before the next one is opened: it calls this function.
        sd_bus_close(monitor);
        remove_all();
        retry_arm(&retry);
        return 1;
    }
    sd_bus_message_get_type(message, &type);
    if (type == SD_BUS_MESSAGE_METHOD_CALL && sd_bus_message_is_method_call(message, interface, "Notify") > 0)
        notify_called(message);
    else if (type == SD_BUS_MESSAGE_METHOD_RETURN)
        notify_answered(message);
    else if (sd_bus_message_is_signal(message, interface, "NotificationClosed") > 0 && sd_bus_message_read(message, "u", &number) >= 0)
        set(number, false);
    // The program that shows notifications has begun or ended, and none is shown.
    else if (sd_bus_message_is_signal(message, "org.freedesktop.DBus", "NameOwnerChanged") > 0)
        remove_all();
    return 1;
}

static int became_monitor(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
    (void)userdata, (void)error;
    const sd_bus_error *refused = sd_bus_message_get_error(reply);
    if (refused) fprintf(stderr, "greenroom-session: cannot watch notifications: %s\n", refused->message);
    else if (is_verbose) puts("Notifications are watched."), fflush(stdout);
    return 1;
}

static int open_monitor(void) {
    const char *address;
    sd_bus_message *call = NULL;
    int status = sd_bus_get_address(daemons[BUS_SESSION].bus, &address);
    if (status >= 0) status = sd_bus_new(&monitor);
    if (status >= 0) status = sd_bus_set_address(monitor, address);
    if (status >= 0) status = sd_bus_set_bus_client(monitor, 1);
    if (status >= 0) status = sd_bus_set_monitor(monitor, 1);
    if (status >= 0) status = sd_bus_add_filter(monitor, NULL, seen, NULL);
    if (status >= 0) status = sd_bus_start(monitor);
    if (status >= 0) status = sd_bus_attach_event(monitor, loop, SD_EVENT_PRIORITY_NORMAL);
    if (status >= 0) status = sd_bus_message_new_method_call(monitor, &call, "org.freedesktop.DBus", "/org/freedesktop/DBus",
        "org.freedesktop.DBus.Monitoring", "BecomeMonitor");
    if (status >= 0) status = sd_bus_message_open_container(call, 'a', "s");
    for (size_t i = 0; i < sizeof rules / sizeof *rules && status >= 0; i++) status = sd_bus_message_append(call, "s", rules[i]);
    if (status >= 0) status = sd_bus_message_close_container(call);
    if (status >= 0) status = sd_bus_message_append(call, "u", 0);
    if (status >= 0) status = sd_bus_call_async(monitor, &monitor_call, call, became_monitor, NULL, 0);
    sd_bus_message_unref(call);
    return status;
}

static void close_monitor(void) {
    monitor_call = sd_bus_slot_unref(monitor_call);
    monitor = sd_bus_close_unref(monitor);
    remove_all();
}

static int open_again(sd_event_source *source, uint64_t at, void *userdata) {
    (void)source, (void)at, (void)userdata;
    close_monitor();
    if (daemons[BUS_SESSION].bus && open_monitor() < 0) {
        close_monitor();
        retry_arm(&retry);
    }
    return 0;
}

static void follow(void) {
    if (daemons[BUS_SESSION].bus && (daemons[BUS_SESSION].is_wanted || daemons[BUS_SYSTEM].is_wanted)) {
        // Not twice, and not before its time.
        int is_armed = 0;
        sd_event_source_get_enabled(retry.timer, &is_armed);
        if (!monitor && is_armed == SD_EVENT_OFF) open_again(NULL, 0, NULL);
        return;
    }
    sd_event_source_set_enabled(retry.timer, SD_EVENT_OFF);
    close_monitor();
}

// MARK: The daemons

int alerts_begin(void) {
    int status = retry_begin(&retry, open_again, NULL);
    if (status >= 0) status = sd_event_add_time(loop, &timer, CLOCK_MONOTONIC, 0, 1, report_all, NULL);
    return status < 0 ? status : sd_event_source_set_enabled(timer, SD_EVENT_OFF);
}

void alerts_connected(enum bus which, sd_bus *bus) { daemons[which].bus = bus; }

void alerts_wanted(enum bus which, bool is_wanted) {
    // Also a daemon that has replaced another one: it knows of no alert.
    daemons[which].is_wanted = is_wanted;
    daemons[which].is_notified = false;
    report_to(&daemons[which]);
    follow();
}

void alerts_lost(enum bus which) {
    sd_bus_slot_unref(daemons[which].call);
    daemons[which] = (struct daemon){0};
    follow();
}
