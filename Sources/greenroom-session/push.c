#include "session.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Messages of push servers, for apps of this user with `UnifiedPush=yes` (L30). A distributor on the bus of the session receives them
// from the network (UnifiedPush, D-Bus specification; both versions of its interfaces). Each app is registered there with a token of its own,
// which is kept in a file: with the same token it keeps its endpoint, the address that the distributor has for it. The distributor
// reaches all apps at the name of this program. Neither endpoints nor messages are printed.
static const char *const own_name = "org.greenroom.Session";
static const char *const distributor_path = "/org/unifiedpush/Distributor";
static const char *const connector_path = "/org/unifiedpush/Connector";
#define PREFIX "org.unifiedpush.Distributor."
// The most apps that are registered. Those beyond are left out.
enum { MOST_APPS = 32 };
// The most messages that greenroomd has not answered, and calls of the distributor in a second. More are refused.
enum { MOST_MESSAGES = 64, MOST_CALLS = 100 };
// In bytes (UnifiedPush, D-Bus specification, "Resources").
enum { LONGEST_MESSAGE = 4096, LONGEST_ENDPOINT = 1000 };
enum { LONGEST_TEXT = 256 };

static sd_bus *buses[BUS_COUNT];
static sd_bus_slot *owner_match, *connectors[2], *find_call, *name_call;
static bool has_name;
// The name of the distributor, and that of its connection; empty: it does not run.
static char distributor[LONGEST_TEXT], owner[LONGEST_TEXT];
static struct retry retry;
static uint64_t second_began;
static unsigned calls;

// `app` is empty: unused.
static struct registration {
    enum bus which;
    char app[LONGEST_TEXT], description[LONGEST_TEXT], token[TOKEN_SIZE], endpoint[LONGEST_ENDPOINT + 1];
    // What the daemon's list says; UNKNOWN: it has not answered yet.
    enum { UNKNOWN, LISTED, UNLISTED } list;
    // The file with the token exists: the app may be registered.
    bool is_stored;
    // It was registered since the distributor began, or that has failed.
    bool is_asked, has_failed;
    // The distributor has only version 1.
    bool is_old;
    // Register or Unregister.
    sd_bus_slot *call;
    sd_bus_slot *report_call;
} all[MOST_APPS];

static struct delivery {
    struct registration *to;
    // The distributor's call, which is answered when greenroomd has the message; NULL: unused. The others are parts of it.
    sd_bus_message *message;
    const void *bytes;
    size_t size;
    const char *id;
    sd_bus_slot *call;
} deliveries[MOST_MESSAGES];

static void follow(void);

// MARK: Messages

static void finish(struct delivery *delivery) {
    sd_bus_slot_unref(delivery->call);
    sd_bus_message_unref(delivery->message);
    *delivery = (struct delivery){0};
}

static int answer(sd_bus_message *call, const char *id) {
    if (!sd_bus_message_has_signature(call, "a{sv}")) return sd_bus_reply_method_return(call, NULL);
    return id ? sd_bus_reply_method_return(call, "a{sv}", 1, "id", "s", id) : sd_bus_reply_method_return(call, "a{sv}", 0);
}

static int passed(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
    (void)error;
    struct delivery *delivery = userdata;
    delivery->call = sd_bus_slot_unref(delivery->call);
    const sd_bus_error *refused = sd_bus_message_get_error(reply);
    // A daemon that is replaced gets it when the next one has begun.
    if (refused && (sd_bus_error_has_name(refused, SD_BUS_ERROR_SERVICE_UNKNOWN) ||
                    sd_bus_error_has_name(refused, SD_BUS_ERROR_NAME_HAS_NO_OWNER)))
        return 0;
    if (is_verbose) printf("Push: %s: %s\n", delivery->to->app, refused ? refused->message : "a message"), fflush(stdout);
    if (refused) sd_bus_reply_method_error(delivery->message, refused);
    else answer(delivery->message, delivery->id);
    finish(delivery);
    return 0;
}

static void pass(struct delivery *delivery) {
    sd_bus_message *call = NULL;
    sd_bus *bus = buses[delivery->to->which];
    if (!bus || delivery->call) return;
    int status = sd_bus_message_new_method_call(bus, &call, "org.greenroom", "/org/greenroom", "org.greenroom.Manager1", "ReportPush");
    if (status >= 0) status = sd_bus_message_set_auto_start(call, 0);
    if (status >= 0) status = sd_bus_message_append(call, "s", delivery->to->app);
    if (status >= 0) status = sd_bus_message_append_array(call, 'y', delivery->bytes, delivery->size);
    // The daemon answers when the app runs.
    if (status >= 0) status = sd_bus_call_async(bus, &delivery->call, call, passed, delivery, UINT64_MAX);
    sd_bus_message_unref(call);
    if (status >= 0) return;
    sd_bus_reply_method_errno(delivery->message, status, NULL);
    finish(delivery);
}

// MARK: Calls of the distributor

// What a call or an answer has; the first version has no dictionary.
enum { TOKEN, ENDPOINT, ID, SUCCESS, REASON, KEY_COUNT };
static const char *const keys[KEY_COUNT] = {"token", "endpoint", "id", "success", "reason"};
struct arguments {
    const char *texts[KEY_COUNT];
    const void *bytes;
    size_t size;
};

static bool read_dictionary(sd_bus_message *message, struct arguments *read) {
    const char *name, *type;
    if (sd_bus_message_enter_container(message, 'a', "{sv}") < 0) return false;
    while (sd_bus_message_enter_container(message, 'e', "sv") > 0) {
        size_t key = 0;
        int status = sd_bus_message_read(message, "s", &name);
        if (status < 0 || sd_bus_message_peek_type(message, NULL, &type) < 0) return false;
        while (key < KEY_COUNT && (strcmp(type, "s") || strcmp(name, keys[key]))) key++;
        if (key < KEY_COUNT) status = sd_bus_message_read(message, "v", "s", &read->texts[key]);
        else if (strcmp(name, "message") || strcmp(type, "ay")) status = sd_bus_message_skip(message, "v");
        else if ((status = sd_bus_message_enter_container(message, 'v', "ay")) >= 0 &&
            (status = sd_bus_message_read_array(message, 'y', &read->bytes, &read->size)) >= 0)
            status = sd_bus_message_exit_container(message);
        if (status < 0 || sd_bus_message_exit_container(message) < 0) return false;
    }
    return true;
}

static bool read_call(sd_bus_message *call, struct arguments *read) {
    const char **texts = read->texts;
    if (sd_bus_message_has_signature(call, "a{sv}")) return read_dictionary(call, read);
    if (sd_bus_message_read(call, "s", &texts[TOKEN]) < 0) return false;
    if (sd_bus_message_is_method_call(call, NULL, "Message")) return sd_bus_message_read_array(call, 'y', &read->bytes, &read->size) >= 0;
    return sd_bus_message_is_method_call(call, NULL, "Unregistered") || sd_bus_message_read(call, "s", &texts[ENDPOINT]) >= 0;
}

static void report_endpoint(struct registration *one) {
    report(buses[one->which], &one->report_call, "ReportPushEndpoint", "ss", one->app, one->endpoint);
}

static bool is_url(const char *text) {
    if (strncmp(text, "https://", 8) && strncmp(text, "http://", 7)) return false;
    for (const char *next = text; *next; next++)
        if (*next <= ' ' || *next > '~') return false;
    return true;
}

static int deliver(struct registration *to, sd_bus_message *message, const struct arguments *read, sd_bus_error *error) {
    struct delivery *delivery = deliveries;
    if (read->size == 0 || read->size > LONGEST_MESSAGE)
        return sd_bus_error_setf(
            error, SD_BUS_ERROR_INVALID_ARGS, "The message has %zu bytes; expected 1 to %d.", read->size, LONGEST_MESSAGE);
    while (delivery < deliveries + MOST_MESSAGES && delivery->message) delivery++;
    if (delivery == deliveries + MOST_MESSAGES)
        return sd_bus_error_setf(error, SD_BUS_ERROR_LIMITS_EXCEEDED, "%d messages wait for greenroomd; try again later.", MOST_MESSAGES);
    *delivery = (struct delivery){to, sd_bus_message_ref(message), read->bytes, read->size, read->texts[ID], NULL};
    pass(delivery);
    return 1;
}

static int handle(sd_bus_message *call, sd_bus_error *error) {
    const char *sender = sd_bus_message_get_sender(call);
    struct registration *one = all;
    struct arguments read = {.texts = {"", ""}};
    if (!owner[0] || !sender || strcmp(sender, owner))
        return sd_bus_error_set(error, SD_BUS_ERROR_ACCESS_DENIED, "The caller is not the distributor of this session.");
    if (now() - second_began >= SECOND) second_began = now(), calls = 0;
    if (++calls > MOST_CALLS)
        return sd_bus_error_setf(error, SD_BUS_ERROR_LIMITS_EXCEEDED, "More than %d calls in a second; try again later.", MOST_CALLS);
    if (!read_call(call, &read)) return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "The arguments are damaged.");
    // The first version confirms with an empty token that an app is unregistered.
    while (one < all + MOST_APPS && (!one->is_stored || strcmp(one->token, read.texts[TOKEN]))) one++;
    if (one == all + MOST_APPS) return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "No app is registered with this token.");
    if (sd_bus_message_is_method_call(call, NULL, "Message")) return deliver(one, call, &read, error);
    bool is_unregistered = sd_bus_message_is_method_call(call, NULL, "Unregistered");
    const char *endpoint = is_unregistered ? "" : read.texts[ENDPOINT];
    if (!is_unregistered && (!is_url(endpoint) || strlen(endpoint) > LONGEST_ENDPOINT))
        return sd_bus_error_setf(
            error, SD_BUS_ERROR_INVALID_ARGS, "The endpoint is no URL of http or https with at most %d bytes.", LONGEST_ENDPOINT);
    // The user has removed it there: it is registered again when the distributor begins anew.
    copy(one->endpoint, sizeof one->endpoint, endpoint);
    if (is_verbose) printf("Push: %s has %s\n", one->app, is_unregistered ? "no endpoint" : "an endpoint"), fflush(stdout);
    if (one->list != UNLISTED) report_endpoint(one);
    return answer(call, NULL);
}

static int called(sd_bus_message *call, void *userdata, sd_bus_error *error) {
    (void)userdata;
    int status = handle(call, error);
    if (status < 0 && is_verbose) printf("Push: refused: %s\n", error->message ? error->message : strerror(-status)), fflush(stdout);
    return status;
}

static const sd_bus_vtable connector1[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("Message", "says", "", called, SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_METHOD_NO_REPLY),
    SD_BUS_METHOD("NewEndpoint", "ss", "", called, SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_METHOD_NO_REPLY),
    SD_BUS_METHOD("Unregistered", "s", "", called, SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_METHOD_NO_REPLY),
    SD_BUS_VTABLE_END};
static const sd_bus_vtable connector2[] = {
    SD_BUS_VTABLE_START(0), SD_BUS_METHOD("Message", "a{sv}", "a{sv}", called, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("NewEndpoint", "a{sv}", "a{sv}", called, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("Unregistered", "a{sv}", "a{sv}", called, SD_BUS_VTABLE_UNPRIVILEGED), SD_BUS_VTABLE_END};

// MARK: Registration

static void remove_registration(struct registration *one) {
    if (one->is_stored) token_remove(one->which, one->app);
    for (size_t i = 0; i < MOST_MESSAGES; i++)
        if (deliveries[i].to == one) finish(&deliveries[i]);
    sd_bus_slot_unref(one->call);
    sd_bus_slot_unref(one->report_call);
    *one = (struct registration){0};
}

// Calls Register or Unregister. It may be answered late: a distributor waits for the network.
static void ask(struct registration *one, bool is_register, sd_bus_message_handler_t answered) {
    sd_bus_message *call = NULL;
    one->is_asked = true;
    int status = sd_bus_message_new_method_call(buses[BUS_SESSION], &call, owner, distributor_path,
        one->is_old ? "org.unifiedpush.Distributor1" : "org.unifiedpush.Distributor2", is_register ? "Register" : "Unregister");
    if (status >= 0 && is_register)
        status = one->is_old ? sd_bus_message_append(call, "sss", own_name, one->token, one->description) :
            sd_bus_message_append(call, "a{sv}", 3, "service", "s", own_name, "token", "s", one->token, "description", "s", one->description);
    else if (status >= 0)
        status = one->is_old ? sd_bus_message_append(call, "s", one->token) : sd_bus_message_append(call, "a{sv}", 1, "token", "s", one->token);
    // The first version does not answer that.
    bool is_answered = is_register || !one->is_old;
    if (status >= 0 && is_answered) sd_bus_call_async(buses[BUS_SESSION], &one->call, call, answered, one, UINT64_MAX);
    else if (status >= 0) sd_bus_send(buses[BUS_SESSION], call, NULL);
    sd_bus_message_unref(call);
    if (!is_answered) remove_registration(one);
}

// Whether the distributor does not know the second version, so that it is asked with the first.
static bool is_older(struct registration *one, const sd_bus_error *refused) {
    if (one->is_old || !refused || !(sd_bus_error_has_name(refused, SD_BUS_ERROR_UNKNOWN_METHOD) ||
                                     sd_bus_error_has_name(refused, SD_BUS_ERROR_UNKNOWN_INTERFACE)))
        return false;
    one->is_old = true;
    one->is_asked = false;
    return true;
}

static int registered(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
    (void)error;
    struct registration *one = userdata;
    const sd_bus_error *refused = sd_bus_message_get_error(reply);
    struct arguments read = {.texts = {[SUCCESS] = "", [REASON] = refused ? refused->message : "no reason"}};
    one->call = sd_bus_slot_unref(one->call);
    if (!is_older(one, refused)) {
        bool had_failed = one->has_failed;
        if (!refused && one->is_old) sd_bus_message_read(reply, "ss", &read.texts[SUCCESS], &read.texts[REASON]);
        else if (!refused) read_dictionary(reply, &read);
        const char *reason = read.texts[REASON];
        one->has_failed = strcmp(read.texts[SUCCESS], "REGISTRATION_SUCCEEDED") != 0;
        if (one->has_failed && !had_failed)
            fprintf(stderr, "greenroom-session: %s does not register '%s': %.100s\n", distributor, one->app, reason);
        // What only the user can change is asked again when the distributor begins anew.
        bool is_for_user = !strcmp(reason, "ACTION_REQUIRED") || !strcmp(reason, "VAPID_REQUIRED") || !strcmp(reason, "UNAUTHORIZED");
        int is_armed = 0;
        sd_event_source_get_enabled(retry.timer, &is_armed);
        if (one->has_failed && !is_for_user && !is_armed) retry_arm(&retry);
    }
    follow();
    return 0;
}

static int unregistered(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
    (void)error;
    struct registration *one = userdata;
    one->call = sd_bus_slot_unref(one->call);
    if (is_older(one, sd_bus_message_get_error(reply))) follow();
    else if (one->list == UNLISTED) remove_registration(one);
    // The manifest is there again.
    else one->is_asked = false, follow();
    return 0;
}

static int try_again(sd_event_source *source, uint64_t at, void *userdata) {
    (void)source, (void)at, (void)userdata;
    for (size_t i = 0; i < MOST_APPS; i++)
        if (all[i].has_failed && !all[i].call) all[i].is_asked = false;
    follow();
    return 0;
}

// MARK: The distributor

static int named(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
    (void)userdata, (void)error;
    uint32_t result = 0;
    name_call = sd_bus_slot_unref(name_call);
    // DBUS_REQUEST_NAME_REPLY_PRIMARY_OWNER
    has_name = !sd_bus_message_is_method_error(reply, NULL) && sd_bus_message_read(reply, "u", &result) >= 0 && result == 1;
    if (!has_name) fprintf(stderr, "greenroom-session: apps get no pushes: another program has the name %s\n", own_name);
    follow();
    return 0;
}

static void call_bus(sd_bus_slot **slot, const char *method, sd_bus_message_handler_t answered, void *userdata, const char *types, ...) {
    sd_bus_message *call = NULL;
    va_list values;
    va_start(values, types);
    if (sd_bus_message_new_method_call(
            buses[BUS_SESSION], &call, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", method) >= 0 &&
        (!types || sd_bus_message_appendv(call, types, values) >= 0))
        sd_bus_call_async(buses[BUS_SESSION], slot, call, answered, userdata, 0);
    va_end(values);
    sd_bus_message_unref(call);
}

// The distributor has begun, or ended (`connection` is empty).
static void set_distributor(const char *name, const char *connection) {
    if (strcmp(name, distributor) && !copy(distributor, sizeof distributor, name)) return;
    copy(owner, sizeof owner, connection);
    if (is_verbose) printf("Push: %s %s\n", name, *connection ? "runs" : "has ended"), fflush(stdout);
    for (size_t i = 0; i < MOST_APPS; i++) {
        all[i].call = sd_bus_slot_unref(all[i].call);
        all[i].is_asked = all[i].is_old = false;
    }
    // DBUS_NAME_FLAG_DO_NOT_QUEUE. Not before the distributor is known: it may have started this program with a message.
    if (*connection && !has_name && !name_call) call_bus(&name_call, "RequestName", named, NULL, "su", own_name, 4);
    follow();
}

static bool is_distributor(const char *name) {
    const char *only = getenv("UNIFIEDPUSH_DISTRIBUTOR");
    return !strncmp(name, PREFIX, strlen(PREFIX)) && (!only || !*only || !strcmp(name + strlen(PREFIX), only));
}

static int owner_changed(sd_bus_message *message, void *userdata, sd_bus_error *error) {
    (void)userdata, (void)error;
    const char *name, *after;
    if (sd_bus_message_read(message, "sss", &name, NULL, &after) < 0) return 0;
    if (!strcmp(name, distributor) || (*after && !owner[0] && is_distributor(name))) set_distributor(name, after);
    return 0;
}

static int owned(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
    (void)userdata, (void)error;
    const char *connection;
    find_call = sd_bus_slot_unref(find_call);
    if (!owner[0] && !sd_bus_message_is_method_error(reply, NULL) && sd_bus_message_read(reply, "s", &connection) >= 0)
        set_distributor(distributor, connection);
    return 0;
}

// The names that have an owner, and then, `userdata`, those whose programs the bus can start. Without any, one is awaited.
static int listed(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
    (void)error;
    const char *name, *first = NULL;
    find_call = sd_bus_slot_unref(find_call);
    if (owner[0] || sd_bus_message_is_method_error(reply, NULL) || sd_bus_message_enter_container(reply, 'a', "s") < 0) return 0;
    while (sd_bus_message_read(reply, "s", &name) > 0)
        if (is_distributor(name) && (!first || strcmp(name, first) < 0)) first = name;
    if (!first && !userdata) call_bus(&find_call, "ListActivatableNames", listed, all, NULL);
    else if (first && copy(distributor, sizeof distributor, first)) {
        // Its owner follows, with a signal.
        if (userdata) call_bus(NULL, "StartServiceByName", NULL, NULL, "su", distributor, 0);
        else call_bus(&find_call, "GetNameOwner", owned, NULL, "s", distributor);
    }
    return 0;
}

static void drop_distributor(void) {
    if (has_name && buses[BUS_SESSION]) call_bus(NULL, "ReleaseName", NULL, NULL, "s", own_name);
    sd_bus_slot **const slots[] = {&owner_match, &connectors[0], &connectors[1], &find_call, &name_call};
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) *slots[i] = sd_bus_slot_unref(*slots[i]);
    distributor[0] = owner[0] = has_name = false;
    sd_event_source_set_enabled(retry.timer, SD_EVENT_OFF);
}

// Does what is due: finds the distributor while there is an app, registers apps, and unregisters those that are gone.
static void follow(void) {
    sd_bus *bus = buses[BUS_SESSION];
    bool is_wanted = false;
    for (size_t i = 0; i < MOST_APPS; i++) {
        if (all[i].app[0] && all[i].list == UNLISTED && !all[i].is_stored) remove_registration(&all[i]);
        is_wanted |= all[i].app[0] != 0;
    }
    if (!bus || !is_wanted) return drop_distributor();
    if (!owner_match) {
        sd_bus_add_match_async(bus, &owner_match,
            "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
            "arg0namespace='org.unifiedpush.Distributor'", owner_changed, NULL, NULL);
        sd_bus_add_object_vtable(bus, &connectors[0], connector_path, "org.unifiedpush.Connector1", connector1, NULL);
        sd_bus_add_object_vtable(bus, &connectors[1], connector_path, "org.unifiedpush.Connector2", connector2, NULL);
        call_bus(&find_call, "ListNames", listed, NULL, NULL);
    }
    for (size_t i = 0; i < MOST_APPS && owner[0] && has_name; i++) {
        struct registration *one = &all[i];
        if (!one->app[0] || one->list == UNKNOWN || one->call || one->is_asked) continue;
        if (one->list == UNLISTED) ask(one, false, unregistered);
        else if (one->is_stored || (one->is_stored = token_make(one->which, one->app, one->token))) ask(one, true, registered);
        // The reason is printed.
        else one->is_asked = true;
    }
}

// MARK: The daemons

static void list(enum bus which, const char *app, const char *description) {
    struct registration *unused = NULL;
    for (size_t i = 0; i < MOST_APPS; i++) {
        struct registration *one = &all[i];
        if (!one->app[0]) unused = unused ? unused : one;
        if (one->which != which || strcmp(one->app, app)) continue;
        one->list = LISTED;
        copy(one->description, sizeof one->description, description);
        // The daemon may be another one.
        if (one->endpoint[0]) report_endpoint(one);
        return;
    }
    if (!unused || !app[0] || !copy(unused->description, sizeof unused->description, description) ||
        !copy(unused->app, sizeof unused->app, app))
        return;
    unused->which = which;
    unused->list = LISTED;
}

static void set_list(enum bus which, int list) {
    for (size_t i = 0; i < MOST_APPS; i++)
        if (all[i].app[0] && all[i].which == which) all[i].list = list;
}

// a(sss): apps with their user and a name
void push_wanted(enum bus which, sd_bus_message *reply) {
    const char *app, *user, *name;
    // A daemon that does not run has said nothing of its apps: they stay registered.
    if (sd_bus_message_is_method_error(reply, NULL) || sd_bus_message_enter_container(reply, 'v', "a(sss)") < 0 ||
        sd_bus_message_enter_container(reply, 'a', "(sss)") < 0)
        return set_list(which, UNKNOWN);
    set_list(which, UNLISTED);
    while (sd_bus_message_read(reply, "(sss)", &app, &user, &name) > 0)
        if (is_mine(user)) list(which, app, name);
    for (size_t i = 0; i < MOST_APPS; i++)
        if (all[i].list == UNLISTED) all[i].is_asked = false;
    for (size_t i = 0; i < MOST_MESSAGES; i++)
        if (deliveries[i].message && deliveries[i].to->which == which) pass(&deliveries[i]);
    follow();
}

static void loaded(enum bus which, const char *app, const char *token) {
    struct registration *one = all;
    while (one < all + MOST_APPS && one->app[0]) one++;
    if (one == all + MOST_APPS || !copy(one->app, sizeof one->app, app)) return;
    copy(one->token, sizeof one->token, token);
    one->which = which;
    one->is_stored = true;
}

int push_begin(void) {
    tokens_load(loaded);
    return retry_begin(&retry, try_again, NULL);
}

void push_connected(enum bus which, sd_bus *bus) {
    buses[which] = bus;
    follow();
}

void push_lost(enum bus which) {
    buses[which] = NULL;
    set_list(which, UNKNOWN);
    for (size_t i = 0; i < MOST_MESSAGES; i++) {
        // Nothing can be answered any more on the bus of the session.
        if (deliveries[i].message && which == BUS_SESSION) finish(&deliveries[i]);
        else if (deliveries[i].message && deliveries[i].to->which == which) deliveries[i].call = sd_bus_slot_unref(deliveries[i].call);
    }
    for (size_t i = 0; i < MOST_APPS; i++) {
        if (all[i].which == which) all[i].report_call = sd_bus_slot_unref(all[i].report_call);
        if (which == BUS_SESSION) all[i].call = sd_bus_slot_unref(all[i].call), all[i].is_asked = false;
    }
    follow();
}
