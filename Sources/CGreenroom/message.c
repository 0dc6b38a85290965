/* Calls and replies as D-Bus messages. */
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

// MARK: Calls

static int append_attach(greenroom_app *app, sd_bus_message *message) {
    const char *names[KINDS];
    event_handled_names(app, names);
    int r = sd_bus_message_open_container(message, 'a', "{sv}");
    // sd_bus_message_append() cannot append an array of strings that is NULL-terminated.
    r = r < 0 ? r : sd_bus_message_open_container(message, 'e', "sv");
    r = r < 0 ? r : sd_bus_message_append(message, "s", "handles");
    r = r < 0 ? r : sd_bus_message_open_container(message, 'v', "as");
    r = r < 0 ? r : sd_bus_message_append_strv(message, (char **)names);
    r = r < 0 ? r : sd_bus_message_close_container(message);
    r = r < 0 ? r : sd_bus_message_close_container(message);
    // Events that are being handled are in memory, and their answers are repeated: only later ones have to be sent.
    r = r < 0 ? r : sd_bus_message_append(message, "{sv}", "serial", "t", app->last_serial);
    r = r < 0 ? r : sd_bus_message_append(message, "{sv}", "library", "s", app->library);
    return r < 0 ? r : sd_bus_message_close_container(message);
}

static int append_arguments(const struct call *call, sd_bus_message *message) {
    switch (call->arguments) {
    case ARGUMENTS_NONE:
        return 0;
    case ARGUMENTS_TEXT:
        return sd_bus_message_append(message, "s", call->text);
    case ARGUMENTS_TASK:
        return call->text ? sd_bus_message_append(message, "ss", call->text, call->token)
                          : sd_bus_message_append(message, "s", call->token);
    case ARGUMENTS_FLAG:
        return sd_bus_message_append(message, "b", (int)call->flag);
    case ARGUMENTS_ANSWER:
        return call->result ? sd_bus_message_append(message, "ta{sv}", call->serial, 1, "result", "s", call->result)
                            : sd_bus_message_append(message, "ta{sv}", call->serial, 0);
    case ARGUMENTS_DESCRIPTOR:
        return call->text ? sd_bus_message_append(message, "sh", call->text, call->descriptor)
                          : sd_bus_message_append(message, "h", call->descriptor);
    case ARGUMENTS_SCENE_SNAPSHOT:
        return sd_bus_message_append(message, "ssh", call->text, call->type, call->descriptor);
    case ARGUMENTS_PROGRESS:
        return sd_bus_message_append(message, "stts", call->text, call->done, call->total, call->type);
    case ARGUMENTS_ATTACH:
        return append_attach(call->app, message);
    }
    return -EINVAL;
}

int message_send(struct call *call, sd_bus_message_handler_t handler) {
    sd_bus_message *message = NULL;
    sd_bus *bus = call->app->bus;
    int r = sd_bus_message_new_method_call(bus, &message, NULL, SELF_PATH, SELF_INTERFACE, call->member);
    r = r < 0 ? r : append_arguments(call, message);
    // Without a timeout: a daemon that does not answer ends its connections at some time.
    r = r < 0 ? r : sd_bus_call_async(bus, &call->slot, message, handler, call, UINT64_MAX);
    sd_bus_message_unref(message);
    return r;
}

// MARK: Replies

int message_read_file(int descriptor, size_t limit, void **ret, size_t *ret_size) {
    struct stat status;
    if (fstat(descriptor, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode) || status.st_size < 0 || (uint64_t)status.st_size > limit)
        return -EBADMSG;
    size_t capacity = (size_t)status.st_size, size = 0;
    char *data = malloc(capacity + 1);
    if (!data)
        return -ENOMEM;
    while (size < capacity) {
        ssize_t n = pread(descriptor, data + size, capacity - size, (off_t)size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int error = -errno;
            free(data);
            return error;
        }
        if (n == 0)
            break;
        size += (size_t)n;
    }
    data[size] = 0;
    *ret = data;
    *ret_size = size;
    return 0;
}

static int read_values(struct call *call, sd_bus_message *message) {
    int descriptor = -1, r;
    switch (call->values) {
    case VALUES_NONE:
        return 0;
    case VALUES_TIME:
        r = sd_bus_message_read(message, "t", &call->usec);
        return r == 0 ? -EBADMSG : r;
    case VALUES_STATE:
        // The descriptor belongs to the message.
        r = sd_bus_message_read(message, "h", &descriptor);
        if (r <= 0)
            return r < 0 ? r : -EBADMSG;
        return message_read_file(descriptor, MAX_STATE, &call->data, &call->data_size);
    case VALUES_LAUNCH:
        return record_read_launch(call->app, message);
    }
    return 0;
}

static void set_refusal(struct call *call, const sd_bus_error *error) {
    if (call->values == VALUES_STATE && strcmp(error->name, "org.greenroom.Error.NotFound") == 0)
        return;
    const char *sentence = error->message && *error->message ? error->message : error->name;
    call->error = -EPERM;
    call->sentence = strdup(sentence);
    call->error_name = strdup(error->name);
    if (call->values == VALUES_LAUNCH)
        warn(call->app, LOG_WARNING, "greenroomd does not accept this process: %s", sentence);
}

void message_read_reply(struct call *call, sd_bus_message *message) {
    const sd_bus_error *error = sd_bus_message_get_error(message);
    if (error) {
        set_refusal(call, error);
        return;
    }
    call->error = read_values(call, message);
    // sd-bus has these two for values that are missing, or have another type.
    if (call->error == -ENXIO || call->error == -EBUSY)
        call->error = -EBADMSG;
    if (call->error >= 0) {
        call->error = 0;
        return;
    }
    if (asprintf(&call->sentence, "greenroomd sent an invalid answer to %s: %s.", call->member, strerror(-call->error)) < 0)
        call->sentence = NULL;
}
