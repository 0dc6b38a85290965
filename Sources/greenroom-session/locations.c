#include "session.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

// Moves of the device, for apps of this user with `WakeOnLocation=` (L30). Each app has a client of GeoClue (org.freedesktop.GeoClue2), with
// its own desktop ID, so that the user permits or refuses each one. The distance from the position of the last move is measured here: the
// DistanceThreshold of GeoClue compares each position with the one before, so a device that moves slowly never exceeds it. No position is
// reported or printed.
static const char *const service = "org.freedesktop.GeoClue2";
static const char *const manager_path = "/org/freedesktop/GeoClue2/Manager";
static const char *const manager = "org.freedesktop.GeoClue2.Manager";
static const char *const client_interface = "org.freedesktop.GeoClue2.Client";
// The most apps that are followed: each costs GeoClue a client. Those beyond are left out.
enum { MOST_APPS = 32 };
// Between two positions of an app that are read: GPS has one each second.
static const uint64_t interval = 10 * SECOND;
// The longest ID of an app, desktop ID, and path of a client.
enum { LONGEST_TEXT = 256 };

static sd_bus *buses[BUS_COUNT];
static sd_bus_slot *owner_match, *located_match;
static struct retry retry;
static sd_event_source *timer;

// `app` is empty: unused.
static struct client {
    enum bus which;
    char app[LONGEST_TEXT + 1], desktop[LONGEST_TEXT + 1], path[LONGEST_TEXT + 1];
    uint32_t meters;
    // The latest position that is not read yet, an object of GeoClue; empty: none.
    char location[LONGEST_TEXT + 1];
    uint64_t last_reading;
    sd_bus_slot *position_call;
    // The position of the last move, or the first one; `is_located`: there is one.
    bool is_located;
    struct position {
        // In degrees and meters.
        double latitude, longitude, accuracy;
    } reference;
    // The daemon's list has it.
    bool is_listed;
    // CreateClient or Start.
    sd_bus_slot *call;
    sd_bus_slot *report_call;
} clients[MOST_APPS];

// MARK: Reports

static void report_move(struct client *client) {
    // A report that is not answered yet stands for this move, too.
    if (client->report_call || !buses[client->which]) return;
    if (is_verbose) printf("Location: %s\n", client->app), fflush(stdout);
    report(buses[client->which], &client->report_call, "ReportLocation", "s", client->app);
}

// MARK: Positions

// In meters, on a sphere (haversine formula).
static double distance(const struct position *a, const struct position *b) {
    const double degree = acos(-1) / 180, diameter = 2 * 6371000.0;
    double y = sin((b->latitude - a->latitude) * degree / 2), x = sin((b->longitude - a->longitude) * degree / 2);
    return diameter * asin(sqrt(fmin(1, y * y + cos(a->latitude * degree) * cos(b->latitude * degree) * x * x)));
}

static void positioned(struct client *client, const struct position *position) {
    // Also what is no number.
    if (!(fabs(position->latitude) <= 90 && fabs(position->longitude) <= 180 && position->accuracy >= 0)) return;
    if (client->is_located) {
        double moved = distance(&client->reference, position);
        // Two positions that are less accurate than their distance may be the same. Of these the more accurate one counts.
        bool is_other = moved > client->reference.accuracy + position->accuracy;
        bool is_move = is_other && moved >= client->meters;
        if (!is_move && (is_other || position->accuracy >= client->reference.accuracy)) return;
        if (is_move) report_move(client);
    }
    client->is_located = true;
    client->reference = *position;
}

static void read_later(void) {
    uint64_t due = UINT64_MAX;
    for (size_t i = 0; i < MOST_APPS; i++)
        if (clients[i].location[0] && !clients[i].position_call && clients[i].last_reading + interval < due)
            due = clients[i].last_reading + interval;
    sd_event_source_set_time(timer, due > now() ? due : now());
    sd_event_source_set_enabled(timer, due == UINT64_MAX ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

// a{sv}
static bool read_position(sd_bus_message *reply, struct position *position) {
    const char *name, *type;
    *position = (struct position){NAN, NAN, NAN};
    if (sd_bus_message_is_method_error(reply, NULL) || sd_bus_message_enter_container(reply, 'a', "{sv}") < 0) return false;
    while (sd_bus_message_enter_container(reply, 'e', "sv") > 0) {
        if (sd_bus_message_read(reply, "s", &name) < 0 || sd_bus_message_peek_type(reply, NULL, &type) < 0) return false;
        double *value = strcmp(type, "d") ? NULL : !strcmp(name, "Latitude") ? &position->latitude :
            !strcmp(name, "Longitude") ? &position->longitude : !strcmp(name, "Accuracy") ? &position->accuracy : NULL;
        if ((value ? sd_bus_message_read(reply, "v", "d", value) : sd_bus_message_skip(reply, "v")) < 0 ||
            sd_bus_message_exit_container(reply) < 0)
            return false;
    }
    return true;
}

static int position_answered(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
    (void)error;
    struct client *client = userdata;
    struct position position;
    client->position_call = sd_bus_slot_unref(client->position_call);
    // A position that is gone was replaced.
    if (read_position(reply, &position)) positioned(client, &position);
    read_later();
    return 0;
}

static int read_positions(sd_event_source *source, uint64_t at, void *userdata) {
    (void)source, (void)at, (void)userdata;
    for (size_t i = 0; i < MOST_APPS; i++) {
        struct client *client = &clients[i];
        if (!client->location[0] || client->position_call || client->last_reading + interval > now()) continue;
        client->last_reading = now();
        if (buses[BUS_SYSTEM])
            sd_bus_call_method_async(buses[BUS_SYSTEM], &client->position_call, service, client->location,
                "org.freedesktop.DBus.Properties", "GetAll", position_answered, client, "s", "org.freedesktop.GeoClue2.Location");
        client->location[0] = 0;
    }
    read_later();
    return 0;
}

static int located(sd_bus_message *message, void *userdata, sd_bus_error *error) {
    (void)userdata, (void)error;
    const char *location, *path = sd_bus_message_get_path(message);
    if (!path || sd_bus_message_read(message, "oo", NULL, &location) < 0) return 0;
    for (size_t i = 0; i < MOST_APPS; i++)
        if (clients[i].app[0] && !strcmp(clients[i].path, path)) copy(clients[i].location, sizeof clients[i].location, location);
    read_later();
    return 0;
}

// MARK: Clients of GeoClue

// Removes what GeoClue has of a client.
static void stop(struct client *client) {
    sd_bus_message *call = NULL;
    client->call = sd_bus_slot_unref(client->call);
    client->position_call = sd_bus_slot_unref(client->position_call);
    client->location[0] = 0;
    client->last_reading = 0;
    client->is_located = false;
    if (client->path[0] && buses[BUS_SYSTEM] &&
        sd_bus_message_new_method_call(buses[BUS_SYSTEM], &call, service, manager_path, manager, "DeleteClient") >= 0 &&
        sd_bus_message_set_auto_start(call, 0) >= 0 && sd_bus_message_append(call, "o", client->path) >= 0)
        sd_bus_call_async(buses[BUS_SYSTEM], NULL, call, NULL, NULL, 0);
    sd_bus_message_unref(call);
    client->path[0] = 0;
}

static void remove_client(struct client *client) {
    // The path of a client that is being created is not known yet: `created` removes it.
    if (client->call && !client->path[0]) return;
    stop(client);
    sd_bus_slot_unref(client->report_call);
    *client = (struct client){0};
}

static int started(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
    (void)error;
    struct client *client = userdata;
    client->call = sd_bus_slot_unref(client->call);
    const sd_bus_error *refused = sd_bus_message_get_error(reply);
    if (is_verbose && refused) fprintf(stderr, "greenroom-session: GeoClue: %s: %s\n", client->app, refused->message);
    else if (is_verbose) printf("Location: %s is followed\n", client->app), fflush(stdout);
    // The user has refused, or no agent asks one: it is not tried again before GeoClue begins anew.
    if (refused) stop(client);
    return 0;
}

// GeoClue's levels: exact, street, neighborhood and city (GClueAccuracyLevel).
static uint32_t accuracy(uint32_t meters) { return meters < 100 ? 8 : meters < 1000 ? 6 : meters < 10000 ? 5 : 4; }

static int set(struct client *client, const char *property, const char *type, ...) {
    sd_bus_message *call = NULL;
    va_list values;
    int status = sd_bus_message_new_method_call(
        buses[BUS_SYSTEM], &call, service, client->path, "org.freedesktop.DBus.Properties", "Set");
    if (status >= 0) status = sd_bus_message_append(call, "ss", client_interface, property);
    if (status >= 0) status = sd_bus_message_open_container(call, 'v', type);
    va_start(values, type);
    if (status >= 0) status = sd_bus_message_appendv(call, type, values);
    va_end(values);
    if (status >= 0) status = sd_bus_message_close_container(call);
    if (status >= 0) status = sd_bus_call_async(buses[BUS_SYSTEM], NULL, call, NULL, NULL, 0);
    sd_bus_message_unref(call);
    return status;
}

static void follow(void);

static int created(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
    (void)error;
    struct client *client = userdata;
    const char *path;
    client->call = sd_bus_slot_unref(client->call);
    // GeoClue that is not installed has nothing to say.
    bool is_created = !sd_bus_message_is_method_error(reply, NULL) && sd_bus_message_read(reply, "o", &path) >= 0 &&
        copy(client->path, sizeof client->path, path);
    if (!client->is_listed) {
        remove_client(client);
        follow();
        return 0;
    }
    if (!is_created) return 0;
    int status = set(client, "DesktopId", "s", client->desktop);
    if (status >= 0) status = set(client, "DistanceThreshold", "u", 0);
    if (status >= 0) status = set(client, "RequestedAccuracyLevel", "u", accuracy(client->meters));
    if (status >= 0) status = sd_bus_call_method_async(
        buses[BUS_SYSTEM], &client->call, service, client->path, client_interface, "Start", started, client, NULL);
    if (status < 0) stop(client);
    return 0;
}

// Creates the clients that do not exist yet. GeoClue is started for this by the bus: without clients it ends by itself.
static void follow(void) {
    bool is_wanted = false;
    sd_bus *bus = buses[BUS_SYSTEM];
    for (size_t i = 0; i < MOST_APPS; i++) {
        struct client *client = &clients[i];
        is_wanted |= client->app[0] != 0;
        if (bus && client->app[0] && !client->call && !client->path[0])
            sd_bus_call_method_async(bus, &client->call, service, manager_path, manager, "CreateClient", created, client, NULL);
    }
    if (is_wanted) return;
    owner_match = sd_bus_slot_unref(owner_match);
    located_match = sd_bus_slot_unref(located_match);
    sd_event_source_set_enabled(retry.timer, SD_EVENT_OFF);
}

static int try_again(sd_event_source *source, uint64_t at, void *userdata) {
    (void)source, (void)at, (void)userdata;
    follow();
    return 0;
}

// GeoClue has begun or ended.
static int owner_changed(sd_bus_message *message, void *userdata, sd_bus_error *error) {
    (void)userdata, (void)error;
    const char *before, *after;
    bool was_followed = false;
    if (sd_bus_message_read(message, "sss", NULL, &before, &after) < 0) return 0;
    for (size_t i = 0; i < MOST_APPS && before[0]; i++) {
        was_followed |= clients[i].path[0] || clients[i].call;
        clients[i].path[0] = 0;
        stop(&clients[i]);
        if (!clients[i].is_listed) remove_client(&clients[i]);
    }
    if (after[0]) follow();
    // It ends by itself only without clients.
    else if (was_followed) retry_arm(&retry);
    return 0;
}

static void match(void) {
    sd_bus *bus = buses[BUS_SYSTEM];
    if (!bus || owner_match) return;
    sd_bus_add_match_async(bus, &owner_match,
        "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
        "arg0='org.freedesktop.GeoClue2'", owner_changed, NULL, NULL);
    sd_bus_add_match_async(bus, &located_match,
        "type='signal',sender='org.freedesktop.GeoClue2',interface='org.freedesktop.GeoClue2.Client',member='LocationUpdated'",
        located, NULL, NULL);
}

// MARK: The daemons

static void list(enum bus which, const char *app, const char *desktop, uint32_t meters) {
    struct client *unused = NULL;
    for (size_t i = 0; i < MOST_APPS; i++) {
        struct client *client = &clients[i];
        if (!client->app[0]) unused = unused ? unused : client;
        else if (client->which == which && client->meters == meters && !strcmp(client->app, app) && !strcmp(client->desktop, desktop)) {
            client->is_listed = true;
            return;
        }
    }
    if (!unused || !app[0] || !copy(unused->desktop, sizeof unused->desktop, desktop) || !copy(unused->app, sizeof unused->app, app)) return;
    unused->which = which;
    unused->meters = meters;
    unused->is_listed = true;
}

static void keep_listed(void) {
    for (size_t i = 0; i < MOST_APPS; i++)
        if (clients[i].app[0] && !clients[i].is_listed) remove_client(&clients[i]);
    for (size_t i = 0; i < MOST_APPS; i++)
        if (clients[i].app[0]) match();
    follow();
}

static void unlist(enum bus which) {
    for (size_t i = 0; i < MOST_APPS; i++)
        if (clients[i].which == which) clients[i].is_listed = false;
}

// a(sssu): apps with their user, desktop ID and distance in meters
void locations_wanted(enum bus which, sd_bus_message *reply) {
    const char *app, *user, *desktop;
    uint32_t meters;
    unlist(which);
    if (!sd_bus_message_is_method_error(reply, NULL) && sd_bus_message_enter_container(reply, 'v', "a(sssu)") >= 0 &&
        sd_bus_message_enter_container(reply, 'a', "(sssu)") >= 0)
        while (sd_bus_message_read(reply, "(sssu)", &app, &user, &desktop, &meters) > 0)
            if (is_mine(user)) list(which, app, desktop, meters);
    keep_listed();
}

int locations_begin(void) {
    int status = retry_begin(&retry, try_again, NULL);
    if (status >= 0) status = sd_event_add_time(loop, &timer, CLOCK_MONOTONIC, 0, 1, read_positions, NULL);
    return status < 0 ? status : sd_event_source_set_enabled(timer, SD_EVENT_OFF);
}

void locations_connected(enum bus which, sd_bus *bus) {
    buses[which] = bus;
    if (which == BUS_SYSTEM) keep_listed();
}

void locations_lost(enum bus which) {
    buses[which] = NULL;
    unlist(which);
    for (size_t i = 0; i < MOST_APPS; i++) {
        struct client *client = &clients[i];
        if (client->which == which) client->report_call = sd_bus_slot_unref(client->report_call);
        // GeoClue removes the clients of a connection that is closed.
        if (which == BUS_SYSTEM) client->path[0] = 0, stop(client);
    }
    if (which == BUS_SYSTEM) {
        owner_match = sd_bus_slot_unref(owner_match);
        located_match = sd_bus_slot_unref(located_match);
    }
    keep_listed();
}
