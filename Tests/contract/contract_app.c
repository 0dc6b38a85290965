/* The app of the contract tests in C. contract_app.py and GreenroomTests have the same app in Python and Swift. */
#include <greenroom.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int count;

/* Every action is visible in the transcript, as a summary. */
static void say(greenroom_app *app, const char *format, ...) {
    char *text, refusal[4096];
    va_list values;
    va_start(values, format);
    if (vasprintf(&text, format, values) < 0)
        abort();
    va_end(values);
    if (greenroom_set_summary(app, text) < 0) {
        snprintf(refusal, sizeof refusal, "refused: %s", greenroom_last_error(app));
        greenroom_set_summary(app, refusal);
    }
    free(text);
}

static const char *joined(const greenroom_event *event) {
    static char text[4096];
    size_t length = 0;
    text[0] = 0;
    for (size_t i = 0; i < event->n_names && length < sizeof text; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, " %s", event->names[i]);
    return text;
}

static int background(greenroom_app *app) {
    char text[16];
    snprintf(text, sizeof text, "%d", ++count);
    if (greenroom_save_state(app, text, strlen(text)) < 0)
        say(app, "not saved: %s", greenroom_last_error(app));
    return 0;
}

static int snapshot(greenroom_app *app) {
    char text[32];
    snprintf(text, sizeof text, "page %d", count);
    if (greenroom_save_snapshot_as(app, text, strlen(text), "text/plain") < 0)
        say(app, "no snapshot: %s", greenroom_last_error(app));
    return 0;
}

static int scene_snapshot(greenroom_app *app, const char *scene) {
    if (greenroom_save_scene_snapshot(app, scene, scene, strlen(scene), "text/plain") < 0)
        say(app, "no snapshot: %s", greenroom_last_error(app));
    return 0;
}

static int push(greenroom_app *app, const char *payload) {
    if (strcmp(payload, "task") == 0) {
        greenroom_task *task;
        if (greenroom_task_begin(app, "push", &task) < 0) {
            say(app, "no task: %s", greenroom_last_error(app));
            return GREENROOM_FAILED;
        }
        say(app, "task");
        greenroom_task_end(task);
    }
    if (strcmp(payload, "progress") == 0) {
        greenroom_task *task;
        if (greenroom_task_begin(app, "push", &task) < 0)
            return GREENROOM_FAILED;
        greenroom_task_progress(task, 0, 10, "Copying");
        say(app, "half");
        greenroom_task_progress(task, 10, 10, NULL);
        greenroom_task_end(task);
    }
    if (strcmp(payload, "mode") == 0) {
        if (greenroom_begin_mode(app, "audio") < 0) {
            say(app, "no mode: %s", greenroom_last_error(app));
            return GREENROOM_FAILED;
        }
        say(app, "mode");
        greenroom_end_mode(app, "audio");
    }
    if (strcmp(payload, "scene") == 0) {
        if (greenroom_begin_scene(app, "tools", "panel") < 0) {
            say(app, "no scene: %s", greenroom_last_error(app));
            return GREENROOM_FAILED;
        }
        say(app, "scene");
        greenroom_end_scene(app, "tools");
    }
    if (strcmp(payload, "large") == 0)
        say(app, "%0100000d", 0);
    return strcmp(payload, "none") == 0 ? GREENROOM_NO_DATA : GREENROOM_NEW_DATA;
}

static int handle(greenroom_app *app, const greenroom_event *event, void *userdata) {
    (void)userdata;
    switch (event->kind) {
    case GREENROOM_DID_BECOME_ACTIVE:
        say(app, "active %s", event->cause);
        break;
    case GREENROOM_WILL_RESIGN_ACTIVE:
        say(app, "inactive %s", event->cause);
        break;
    case GREENROOM_WILL_ENTER_FOREGROUND:
        say(app, "foreground");
        break;
    case GREENROOM_DID_ENTER_BACKGROUND:
        return background(app);
    case GREENROOM_WILL_TERMINATE:
        say(app, "terminate %s", event->reason);
        break;
    case GREENROOM_MEMORY_WARNING:
        say(app, "memory %s", event->level);
        break;
    case GREENROOM_TASKS_EXPIRING:
        say(app, "expiring%s", event->n_names > 0 ? joined(event) : " ");
        break;
    case GREENROOM_PUSH:
        return push(app, event->payload);
    case GREENROOM_WAKE:
        say(app, "wake %s", event->reason);
        return strcmp(event->reason, "fetch") == 0 ? GREENROOM_FAILED : GREENROOM_NEW_DATA;
    case GREENROOM_OPEN_URL:
        say(app, "url %s", event->url);
        break;
    case GREENROOM_NOTIFICATION:
        say(app, "notification %s %s", event->notification, event->payload);
        break;
    case GREENROOM_WILL_SUSPEND:
        say(app, "suspend");
        break;
    case GREENROOM_DID_RESUME:
        say(app, "resume %.1f%s", (double)event->suspended_usec / 1e6, joined(event));
        break;
    case GREENROOM_SCENE:
        say(app, "scene %s %s%s%s", event->scene, event->notice, *event->reason ? " " : "", event->reason);
        break;
    case GREENROOM_WITHDRAW:
        say(app, "withdraw");
        break;
    case GREENROOM_DID_DISCARD_SCENES:
        say(app, "discarded%s", joined(event));
        break;
    case GREENROOM_TAKE_SNAPSHOT:
        return snapshot(app);
    case GREENROOM_TAKE_SCENE_SNAPSHOT:
        return scene_snapshot(app, event->scene);
    }
    return 0;
}

int main(void) {
    greenroom_app *app;
    if (greenroom_app_new(&app) < 0)
        return 1;
    for (int kind = 1; greenroom_kind_to_string((greenroom_kind)kind); kind++)
        greenroom_set_handler(app, (greenroom_kind)kind, handle, NULL);
    void *state;
    if (greenroom_restore_state(app, &state, NULL) > 0) {
        count = atoi(state);
        free(state);
        say(app, "restored %d", count);
    }
    int r = greenroom_run(app);
    greenroom_app_free(app);
    return r < 0;
}
