#include "session.h"
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// What the daemons want to know, as their properties say. A daemon that does not run, or is older, wants nothing.
static const struct {
    // A list of users, or for all users.
    const char *property;
    void (*set)(enum bus which, bool is_wanted);
    // Or another list, which is read elsewhere.
    void (*read)(enum bus which, sd_bus_message *reply);
} all[] = {{"SettingsUsers", settings_wanted, NULL}, {"AccountUsers", accounts_wanted, NULL}, {"AlertsWanted", alerts_wanted, NULL},
    {"LocationApps", NULL, locations_wanted}, {"PushApps", NULL, push_wanted}};
enum { COUNT = sizeof all / sizeof *all };

static sd_bus *buses[BUS_COUNT];
static struct question {
    enum bus which;
    sd_bus_slot *call;
} questions[BUS_COUNT][COUNT];

bool is_mine(const char *user) {
    static char name[256];
    char *end;
    unsigned long number = strtoul(user, &end, 10);
    if (end != user && !*end) return number == getuid();
    const struct passwd *entry = name[0] ? NULL : getpwuid(getuid());
    if (entry && entry->pw_name) copy(name, sizeof name, entry->pw_name);
    return !strcmp(user, name);
}

static bool read_wanted(sd_bus_message *reply) {
    const char *type;
    const void *users;
    size_t size;
    int flag = 0;
    if (sd_bus_message_is_method_error(reply, NULL) || sd_bus_message_peek_type(reply, NULL, &type) <= 0) return false;
    if (strcmp(type, "au")) return sd_bus_message_read(reply, "v", "b", &flag) >= 0 && flag;
    if (sd_bus_message_enter_container(reply, 'v', "au") < 0 || sd_bus_message_read_array(reply, 'u', &users, &size) < 0)
        return false;
    for (size_t i = 0; i < size / sizeof(uint32_t); i++)
        if (((const uint32_t *)users)[i] == getuid()) return true;
    return false;
}

static int answered(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
    (void)error;
    struct question *question = userdata;
    question->call = sd_bus_slot_unref(question->call);
    size_t i = question - questions[question->which];
    if (all[i].read) all[i].read(question->which, reply);
    else all[i].set(question->which, read_wanted(reply));
    return 0;
}

static void ask(enum bus which, size_t i) {
    sd_bus_message *call = NULL;
    struct question *question = &questions[which][i];
    question->which = which;
    question->call = sd_bus_slot_unref(question->call);
    int status = sd_bus_message_new_method_call(
        buses[which], &call, "org.greenroom", "/org/greenroom", "org.freedesktop.DBus.Properties", "Get");
    if (status >= 0) status = sd_bus_message_set_auto_start(call, 0);
    if (status >= 0) status = sd_bus_message_append(call, "ss", "org.greenroom.Manager1", all[i].property);
    if (status >= 0) status = sd_bus_call_async(buses[which], &question->call, call, answered, question, 0);
    sd_bus_message_unref(call);
}

static int changed(sd_bus_message *message, void *userdata, sd_bus_error *error) {
    (void)error;
    sd_bus **bus = userdata;
    // Other properties, such as the level of memory, do not matter.
    if (sd_bus_message_skip(message, "s") < 0 || sd_bus_message_enter_container(message, 'a', "{sv}") < 0) return 0;
    while (sd_bus_message_enter_container(message, 'e', "sv") > 0) {
        const char *name;
        if (sd_bus_message_read(message, "s", &name) < 0) return 0;
        for (size_t i = 0; i < COUNT; i++)
            if (!strcmp(name, all[i].property)) ask((enum bus)(bus - buses), i);
        if (sd_bus_message_skip(message, "v") < 0 || sd_bus_message_exit_container(message) < 0) return 0;
    }
    return 0;
}

void wanted_connected(enum bus which, sd_bus *bus) {
    buses[which] = bus;
    sd_bus_add_match_async(bus, NULL,
        "type='signal',sender='org.greenroom',interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',"
        "path='/org/greenroom',arg0='org.greenroom.Manager1'", changed, NULL, &buses[which]);
    wanted_ask(which);
}

void wanted_ask(enum bus which) {
    for (size_t i = 0; i < COUNT; i++) ask(which, i);
}

void wanted_lost(enum bus which) {
    for (size_t i = 0; i < COUNT; i++) questions[which][i].call = sd_bus_slot_unref(questions[which][i].call);
    buses[which] = NULL;
}
