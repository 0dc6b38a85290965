/*
 * Collects the texts that it gets as pushes and URLs in a file: greenroomctl push collector TEXT, greenroomctl open collect:TEXT.
 *
 *     cc collector.c $(pkg-config --cflags --libs greenroom) -o /usr/local/bin/collector
 */
#include <errno.h>
#include <fcntl.h>
#include <greenroom.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned count;

/* Appends a line to the file, which is on the disk then. */
static int append(const char *text) {
    const char *folder = getenv("STATE_DIRECTORY");
    char path[4096];
    snprintf(path, sizeof path, "%s/collected", folder ? folder : ".");
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0)
        return -errno;
    int r = dprintf(file, "%s\n", text) < 0 || fsync(file) < 0 ? -errno : 0;
    close(file);
    return r;
}

static int collect(greenroom_app *app, const char *text) {
    greenroom_task *task = NULL;
    char status[64];
    /* The app is not suspended before the line is on the disk. Without background time it tries nevertheless. */
    greenroom_task_begin(app, "collect", &task);
    int r = append(text);
    greenroom_task_end(task);
    if (r < 0)
        return r;
    snprintf(status, sizeof status, "%u collected", ++count);
    greenroom_set_status(app, status);
    return GREENROOM_NEW_DATA;
}

static int on_push(greenroom_app *app, const greenroom_event *event, void *userdata) {
    (void)userdata;
    return *event->payload ? collect(app, event->payload) : GREENROOM_NO_DATA;
}

static int on_url(greenroom_app *app, const greenroom_event *event, void *userdata) {
    (void)userdata;
    return collect(app, event->url + strcspn(event->url, ":") + 1);
}

static int on_background(greenroom_app *app, const greenroom_event *event, void *userdata) {
    (void)event, (void)userdata;
    return greenroom_save_state(app, &count, sizeof count);
}

int main(void) {
    greenroom_app *app;
    void *state;
    size_t size;
    int r = greenroom_app_new(&app);
    if (r < 0) {
        fprintf(stderr, "collector: %s\n", strerror(-r));
        return 1;
    }
    if (greenroom_restore_state(app, &state, &size) > 0) {
        if (size == sizeof count)
            memcpy(&count, state, size);
        free(state);
    }
    greenroom_set_handler(app, GREENROOM_PUSH, on_push, NULL);
    greenroom_set_handler(app, GREENROOM_OPEN_URL, on_url, NULL);
    greenroom_set_handler(app, GREENROOM_DID_ENTER_BACKGROUND, on_background, NULL);
    r = greenroom_run(app);
    greenroom_app_free(app);
    return r < 0;
}
