/* Records of the type a{sv}: keys that are unknown, or have another type than expected, are ignored. */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int record_each(sd_bus_message *message, int (*read)(sd_bus_message *, const char *key, const char *type, void *), void *userdata) {
    int r = sd_bus_message_enter_container(message, 'a', "{sv}");
    if (r <= 0)
        return r < 0 ? r : -EBADMSG;
    while ((r = sd_bus_message_enter_container(message, 'e', "sv")) > 0) {
        const char *key = NULL, *type = NULL;
        r = sd_bus_message_read(message, "s", &key);
        r = r < 0 ? r : sd_bus_message_peek_type(message, NULL, &type);
        r = r < 0 ? r : read(message, key, type ? type : "", userdata);
        if (r == 0)
            r = sd_bus_message_skip(message, "v");
        r = r < 0 ? r : sd_bus_message_exit_container(message);
        if (r < 0)
            return r;
    }
    return r < 0 ? r : sd_bus_message_exit_container(message);
}

int record_read_text(sd_bus_message *message, const char *type, char **ret) {
    if (strcmp(type, "s") != 0 || *ret)
        return 0;
    const char *text;
    int r = sd_bus_message_read(message, "v", "s", &text);
    if (r < 0)
        return r;
    *ret = strdup(text);
    return *ret ? 1 : -ENOMEM;
}

/// Reads a value of a basic type, if the record has that type.
static int read_basic(sd_bus_message *message, const char *type, const char *expected, void *ret) {
    return strcmp(type, expected) == 0 ? sd_bus_message_read(message, "v", expected, ret) : 0;
}

int record_read_number(sd_bus_message *message, const char *type, uint64_t *ret) { return read_basic(message, type, "t", ret); }

int record_read_int(sd_bus_message *message, const char *type, int *ret) { return read_basic(message, type, "i", ret); }

int record_read_flag(sd_bus_message *message, const char *type, int *ret) { return read_basic(message, type, "b", ret); }

int record_read_span(sd_bus_message *message, const char *type, uint64_t *ret) {
    double seconds = 0;
    int r = read_basic(message, type, "d", &seconds);
    if (r <= 0)
        return r;
    // A comparison with NaN is false.
    if (seconds >= (double)(UINT64_MAX / SECOND))
        *ret = GREENROOM_UNLIMITED;
    else
        *ret = seconds > 0 ? (uint64_t)(seconds * (double)SECOND) : 0;
    return r;
}

void record_free_texts(char **texts) {
    for (char **each = texts; each && *each; each++)
        free(*each);
    free(texts);
}

int record_read_texts(sd_bus_message *message, const char *type, char ***ret, size_t *ret_count) {
    if (strcmp(type, "as") != 0 || *ret)
        return 0;
    char **texts = calloc(MAX_NAMES + 1, sizeof *texts);
    if (!texts)
        return -ENOMEM;
    size_t count = 0;
    const char *text;
    int r = sd_bus_message_enter_container(message, 'v', "as");
    r = r < 0 ? r : sd_bus_message_enter_container(message, 'a', "s");
    while (r >= 0 && (r = sd_bus_message_read(message, "s", &text)) > 0)
        if (count < MAX_NAMES && !(texts[count++] = strdup(text)))
            r = -ENOMEM;
    r = r < 0 ? r : sd_bus_message_exit_container(message);
    r = r < 0 ? r : sd_bus_message_exit_container(message);
    if (r < 0) {
        record_free_texts(texts);
        return r;
    }
    *ret = texts;
    *ret_count = count;
    return 1;
}

// MARK: The launch

/// The parts of greenroom_end that are allocated.
struct end {
    greenroom_end public;
    char *state, *name_space, *code, *explanation;
};

static int read_end(sd_bus_message *message, const char *key, const char *type, void *userdata) {
    struct end *end = userdata;
    if (strcmp(key, "id") == 0)
        return record_read_number(message, type, &end->public.id);
    if (strcmp(key, "time") == 0)
        return record_read_number(message, type, &end->public.time_usec);
    if (strcmp(key, "state") == 0)
        return record_read_text(message, type, &end->state);
    if (strcmp(key, "namespace") == 0)
        return record_read_text(message, type, &end->name_space);
    if (strcmp(key, "code") == 0)
        return record_read_text(message, type, &end->code);
    if (strcmp(key, "explanation") == 0)
        return record_read_text(message, type, &end->explanation);
    if (strcmp(key, "exitStatus") == 0)
        return record_read_int(message, type, &end->public.exit_status);
    if (strcmp(key, "signal") == 0)
        return record_read_int(message, type, &end->public.signal);
    if (strcmp(key, "coreDumped") == 0)
        return record_read_flag(message, type, &end->public.core_dumped);
    return 0;
}

/// The answer to Attach.
struct answer {
    uint64_t serial;
    char *summary;
    struct end end;
    bool has_end;
};

static int read_answer(sd_bus_message *message, const char *key, const char *type, void *userdata) {
    struct answer *answer = userdata;
    if (strcmp(key, "serial") == 0)
        return record_read_number(message, type, &answer->serial);
    if (strcmp(key, "stateSummary") == 0)
        return record_read_text(message, type, &answer->summary);
    if (strcmp(key, "lastReceipt") != 0 || strcmp(type, "a{sv}") != 0 || answer->has_end)
        return 0;
    answer->has_end = true;
    int r = sd_bus_message_enter_container(message, 'v', "a{sv}");
    r = r < 0 ? r : record_each(message, read_end, &answer->end);
    r = r < 0 ? r : sd_bus_message_exit_container(message);
    return r < 0 ? r : 1;
}

static void free_end(struct end *end) {
    free(end->state);
    free(end->name_space);
    free(end->code);
    free(end->explanation);
}

/// Takes over a text; one that is missing is "".
static const char *text_or_empty(char **text) {
    char *own = *text ? *text : strdup("");
    *text = NULL;
    return own;
}

static int keep_end(greenroom_app *app, struct end *end) {
    greenroom_end *kept = &app->last_end;
    *kept = end->public;
    kept->state = text_or_empty(&end->state);
    kept->name_space = text_or_empty(&end->name_space);
    kept->code = text_or_empty(&end->code);
    kept->explanation = text_or_empty(&end->explanation);
    app->has_last_end = kept->state && kept->name_space && kept->code && kept->explanation;
    return app->has_last_end ? 0 : -ENOMEM;
}

int record_read_launch(greenroom_app *app, sd_bus_message *message) {
    struct answer answer = {.end = {.public = {.exit_status = -1}}};
    int r = record_each(message, read_answer, &answer);
    if (r >= 0 && answer.serial > app->last_serial)
        app->last_serial = answer.serial;
    // What later answers say of the launch is the same, and the program has pointers to it.
    if (r >= 0 && !app->knows_launch) {
        app->last_summary = answer.summary;
        answer.summary = NULL;
        if (answer.has_end)
            r = keep_end(app, &answer.end);
    }
    free(answer.summary);
    free_end(&answer.end);
    return r;
}

void record_clear(greenroom_app *app) {
    free(app->last_summary);
    free((char *)app->last_end.state);
    free((char *)app->last_end.name_space);
    free((char *)app->last_end.code);
    free((char *)app->last_end.explanation);
}
