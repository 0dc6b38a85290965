// The app of ContractChaosTests in C: it writes a line to the file CHAOS_LOG for each event that it has handled.
#include <fcntl.h>
#include <greenroom.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int file;

static void say(const char *word, const char *more) {
    char line[512];
    int length = snprintf(line, sizeof line, more ? "%s %s\n" : "%s\n", word, more);
    if (length < 0 || (size_t)length >= sizeof line || write(file, line, (size_t)length) != length)
        abort();
}

static int transition(greenroom_app *app, const greenroom_event *event, void *word) {
    (void)app;
    say(word, event->cause);
    return GREENROOM_NEW_DATA;
}

static int on_background(greenroom_app *app, const greenroom_event *event, void *count) {
    (void)event;
    greenroom_task *task;
    char text[16];
    int length = snprintf(text, sizeof text, "%d", ++*(int *)count);
    if (greenroom_task_begin(app, "save", &task) < 0 || greenroom_save_state(app, text, (size_t)length) < 0)
        fprintf(stderr, "chaos: %s\n", greenroom_last_error(app));
    greenroom_task_end(task);
    say("background", NULL);
    return GREENROOM_NEW_DATA;
}

static int on_push(greenroom_app *app, const greenroom_event *event, void *userdata) {
    (void)userdata;
    greenroom_task *task;
    if (greenroom_task_begin(app, "push", &task) < 0)
        fprintf(stderr, "chaos: %s\n", greenroom_last_error(app));
    say("push", event->payload);
    greenroom_task_end(task);
    return GREENROOM_NEW_DATA;
}

static int on_url(greenroom_app *app, const greenroom_event *event, void *userdata) {
    (void)app;
    (void)userdata;
    say("url", event->url);
    return GREENROOM_NEW_DATA;
}

int main(void) {
    greenroom_app *app;
    int count = 0;
    const char *path = getenv("CHAOS_LOG");
    file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644) : -1;
    if (file < 0 || greenroom_app_new(&app) < 0)
        return 1;
    greenroom_set_handler(app, GREENROOM_DID_BECOME_ACTIVE, transition, "active");
    greenroom_set_handler(app, GREENROOM_WILL_RESIGN_ACTIVE, transition, "inactive");
    greenroom_set_handler(app, GREENROOM_WILL_ENTER_FOREGROUND, transition, "foreground");
    greenroom_set_handler(app, GREENROOM_DID_ENTER_BACKGROUND, on_background, &count);
    greenroom_set_handler(app, GREENROOM_PUSH, on_push, NULL);
    greenroom_set_handler(app, GREENROOM_OPEN_URL, on_url, NULL);
    say("launch", NULL);
    int r = greenroom_run(app);
    greenroom_app_free(app);
    return r < 0;
}
