#include "session.h"
#include <string.h>

// Players on the session's bus: the owners of names org.mpris.MediaPlayer2.* (MPRIS D-Bus Interface Specification 2.2). One that is
// `Playing` plays audio, through PipeWire or not.
static const char *const prefix = "org.mpris.MediaPlayer2.";
static const char *const path = "/org/mpris/MediaPlayer2";
static const char *const interface = "org.mpris.MediaPlayer2.Player";
static const char *const bus_daemon = "org.freedesktop.DBus";
static const char *const bus_path = "/org/freedesktop/DBus";
// The longest name of a bus (D-Bus Specification, "Valid Names").
enum { LONGEST_NAME = 255 };

static struct player {
    // The unique name of its connection; empty: the slot is free.
    char owner[LONGEST_NAME + 1];
    pid_t pid;
    uint32_t number;
    bool plays;
    // What is asked and not answered yet. A player that does not answer is dropped with its connection.
    sd_bus_slot *pid_call, *status_call;
} players[MOST_PLAYERS];
static uint32_t last_number;
// The names that are listed, and whose owners are asked for.
static sd_bus_slot *list_call, *owner_calls[MOST_PLAYERS];

static struct player *find(const char *owner) {
    for (size_t i = 0; i < MOST_PLAYERS; i++)
        if (!strcmp(players[i].owner, owner)) return &players[i];
    return NULL;
}

static void follow(const struct player *player) {
    reports_set(SOURCE_PLAYER, player->number, player->plays ? player->pid : 0, MODE_AUDIO);
}

static void drop(struct player *player) {
    reports_set(SOURCE_PLAYER, player->number, 0, 0);
    sd_bus_slot_unref(player->pid_call);
    sd_bus_slot_unref(player->status_call);
    *player = (struct player){0};
}

static int status_read(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
    (void)error;
    struct player *player = userdata;
    const char *status;
    player->status_call = sd_bus_slot_unref(player->status_call);
    if (sd_bus_message_is_method_error(reply, NULL) || sd_bus_message_read(reply, "v", "s", &status) < 0) return 0;
    player->plays = !strcmp(status, "Playing");
    follow(player);
    return 0;
}

static int pid_read(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
    (void)error;
    struct player *player = userdata;
    uint32_t pid;
    player->pid_call = sd_bus_slot_unref(player->pid_call);
    if (sd_bus_message_is_method_error(reply, NULL) || sd_bus_message_read(reply, "u", &pid) < 0) return 0;
    player->pid = (pid_t)pid;
    follow(player);
    return 0;
}

static void appeared(sd_bus *bus, const char *owner) {
    struct player *player = find(owner) ? NULL : find("");
    if (!player || owner[0] != ':' || strlen(owner) > LONGEST_NAME) return;
    *player = (struct player){.number = ++last_number};
    strcpy(player->owner, owner);
    sd_bus_call_method_async(
        bus, &player->pid_call, bus_daemon, bus_path, bus_daemon, "GetConnectionUnixProcessID", pid_read, player, "s", owner);
    sd_bus_call_method_async(bus, &player->status_call, owner, path, "org.freedesktop.DBus.Properties", "Get", status_read, player,
        "ss", interface, "PlaybackStatus");
}

static int properties_changed(sd_bus_message *message, void *userdata, sd_bus_error *error) {
    (void)userdata, (void)error;
    const char *sender = sd_bus_message_get_sender(message);
    struct player *player = sender ? find(sender) : NULL;
    if (!player || sd_bus_message_skip(message, "s") < 0 || sd_bus_message_enter_container(message, 'a', "{sv}") < 0) return 0;
    while (sd_bus_message_enter_container(message, 'e', "sv") > 0) {
        const char *name, *status;
        if (sd_bus_message_read(message, "s", &name) < 0) return 0;
        if (!strcmp(name, "PlaybackStatus")) {
            if (sd_bus_message_read(message, "v", "s", &status) < 0) return 0;
            player->plays = !strcmp(status, "Playing");
            follow(player);
        } else if (sd_bus_message_skip(message, "v") < 0) {
            return 0;
        }
        if (sd_bus_message_exit_container(message) < 0) return 0;
    }
    return 0;
}

// MARK: Which players there are

static int owner_read(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
    (void)error;
    sd_bus_slot **call = userdata;
    const char *owner;
    *call = sd_bus_slot_unref(*call);
    if (!sd_bus_message_is_method_error(reply, NULL) && sd_bus_message_read(reply, "s", &owner) >= 0)
        appeared(sd_bus_message_get_bus(reply), owner);
    return 0;
}

static int names_listed(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
    (void)userdata, (void)error;
    const char *name;
    list_call = sd_bus_slot_unref(list_call);
    if (sd_bus_message_is_method_error(reply, NULL) || sd_bus_message_enter_container(reply, 'a', "s") < 0) return 0;
    size_t slot = 0;
    while (sd_bus_message_read(reply, "s", &name) > 0) {
        if (strncmp(name, prefix, strlen(prefix))) continue;
        while (slot < MOST_PLAYERS && owner_calls[slot]) slot++;
        if (slot == MOST_PLAYERS) return 0;
        sd_bus_call_method_async(sd_bus_message_get_bus(reply), &owner_calls[slot], bus_daemon, bus_path, bus_daemon,
            "GetNameOwner", owner_read, &owner_calls[slot], "s", name);
    }
    return 0;
}

static void list_names(sd_bus *bus) {
    if (list_call) return;
    sd_bus_call_method_async(bus, &list_call, bus_daemon, bus_path, bus_daemon, "ListNames", names_listed, NULL, NULL);
}

static int owner_changed(sd_bus_message *message, void *userdata, sd_bus_error *error) {
    (void)userdata, (void)error;
    const char *name, *old, *new;
    if (sd_bus_message_read(message, "sss", &name, &old, &new) < 0) return 0;
    struct player *gone = *old ? find(old) : NULL;
    if (gone) {
        drop(gone);
        // Its connection may have another name of a player.
        list_names(sd_bus_message_get_bus(message));
    }
    if (*new) appeared(sd_bus_message_get_bus(message), new);
    return 0;
}

void players_connected(sd_bus *bus) {
    sd_bus_add_match_async(bus, NULL,
        "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
        "arg0namespace='org.mpris.MediaPlayer2'", owner_changed, NULL, NULL);
    sd_bus_add_match_async(bus, NULL,
        "type='signal',interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',path='/org/mpris/MediaPlayer2',"
        "arg0='org.mpris.MediaPlayer2.Player'", properties_changed, NULL, NULL);
    list_names(bus);
}

void players_lost(void) {
    for (size_t i = 0; i < MOST_PLAYERS; i++) {
        if (players[i].owner[0]) drop(&players[i]);
        owner_calls[i] = sd_bus_slot_unref(owner_calls[i]);
    }
    list_call = sd_bus_slot_unref(list_call);
}
