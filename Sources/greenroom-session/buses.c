#include "session.h"
#include <errno.h>
#include <string.h>

// Connections to the two buses. Nothing here waits: a bus that hangs delays nothing else.
static struct link {
    enum bus which;
    int (*open)(sd_bus **bus);
    sd_bus *bus;
    struct retry retry;
} links[BUS_COUNT];

static void lose(struct link *link) {
    if (!link->bus) return;
    reports_lost(link->which);
    wanted_lost(link->which);
    digests_lost(link->which);
    alerts_lost(link->which);
    locations_lost(link->which);
    push_lost(link->which);
    if (link->which == BUS_SESSION) players_lost();
    link->bus = sd_bus_close_unref(link->bus);
}

static int disconnected(sd_bus_message *message, void *userdata, sd_bus_error *error) {
    (void)message, (void)error;
    // The connection cannot be closed while it calls this function: that happens before the next one is opened.
    struct link *link = userdata;
    retry_arm(&link->retry);
    return 0;
}

static int connect_bus(sd_event_source *source, uint64_t at, void *userdata) {
    (void)source, (void)at;
    struct link *link = userdata;
    lose(link);
    int status = link->open(&link->bus);
    if (status >= 0) {
        status = sd_bus_match_signal(link->bus, NULL, "org.freedesktop.DBus.Local", "/org/freedesktop/DBus/Local",
            "org.freedesktop.DBus.Local", "Disconnected", disconnected, link);
        if (status >= 0) status = sd_bus_attach_event(link->bus, loop, SD_EVENT_PRIORITY_NORMAL);
    }
    if (status < 0) {
        link->bus = sd_bus_close_unref(link->bus);
        // -ENOMEDIUM: this process does not know the address of a bus, and will not learn one.
        if (status != -ENOMEDIUM) retry_arm(&link->retry);
        return 0;
    }
    reports_connected(link->which, link->bus);
    digests_connected(link->which, link->bus);
    alerts_connected(link->which, link->bus);
    locations_connected(link->which, link->bus);
    push_connected(link->which, link->bus);
    wanted_connected(link->which, link->bus);
    if (link->which == BUS_SESSION) players_connected(link->bus);
    return 0;
}

int buses_begin(void) {
    links[BUS_SESSION] = (struct link){.which = BUS_SESSION, .open = sd_bus_open_user};
    links[BUS_SYSTEM] = (struct link){.which = BUS_SYSTEM, .open = sd_bus_open_system};
    for (size_t i = 0; i < BUS_COUNT; i++) {
        int status = retry_begin(&links[i].retry, connect_bus, &links[i]);
        if (status < 0) return status;
        connect_bus(NULL, 0, &links[i]);
    }
    return 0;
}

void buses_end(void) {
    for (size_t i = 0; i < BUS_COUNT; i++) lose(&links[i]);
}
