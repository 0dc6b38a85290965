/*
 * The descriptor for the program's loop: an epoll set of the connection, a timer, the signals, and an eventfd that is readable
 * while something waits in memory.
 */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int watch(greenroom_app *app, int descriptor) {
    struct epoll_event event = {.events = EPOLLIN};
    return epoll_ctl(app->epoll, EPOLL_CTL_ADD, descriptor, &event) < 0 ? -errno : 0;
}

int loop_open(greenroom_app *app) {
    app->epoll = app->timer = app->pending = app->wake = app->signals[0] = app->signals[1] = app->polled_bus = -1;
    app->timer_at = UINT64_MAX;
    if ((app->epoll = epoll_create1(EPOLL_CLOEXEC)) < 0 ||
        (app->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) < 0 ||
        (app->pending = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0 || (app->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0 ||
        pipe2(app->signals, O_CLOEXEC | O_NONBLOCK) < 0) {
        int error = -errno;
        loop_close(app);
        return error;
    }
    int r = watch(app, app->timer);
    r = r < 0 ? r : watch(app, app->pending);
    r = r < 0 ? r : watch(app, app->signals[0]);
    if (r < 0)
        loop_close(app);
    return r;
}

void loop_close(greenroom_app *app) {
    int *descriptors[] = {&app->epoll, &app->timer, &app->pending, &app->wake, &app->signals[0], &app->signals[1]};
    for (size_t i = 0; i < sizeof descriptors / sizeof *descriptors; i++) {
        if (*descriptors[i] >= 0)
            close(*descriptors[i]);
        *descriptors[i] = -1;
    }
}

// MARK: What the object waits for

void loop_remove_bus(greenroom_app *app) {
    if (app->polled_bus >= 0)
        epoll_ctl(app->epoll, EPOLL_CTL_DEL, app->polled_bus, NULL);
    app->polled_bus = -1;
    app->polled_events = 0;
}

static void arm_bus(greenroom_app *app) {
    if (!app->bus)
        return;
    int descriptor = sd_bus_get_fd(app->bus), polled = sd_bus_get_events(app->bus);
    if (descriptor < 0)
        return;
    uint32_t events = polled < 0 ? EPOLLIN : (uint32_t)polled;
    if (descriptor == app->polled_bus && events == app->polled_events)
        return;
    struct epoll_event event = {.events = events};
    epoll_ctl(app->epoll, descriptor == app->polled_bus ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, descriptor, &event);
    app->polled_bus = descriptor;
    app->polled_events = events;
}

static void arm_timer(greenroom_app *app) {
    uint64_t deadline = connection_deadline(app);
    if (deadline == app->timer_at)
        return;
    app->timer_at = deadline;
    struct itimerspec spec = {.it_value = {.tv_sec = 0}};
    if (deadline != UINT64_MAX) {
        // A time of 0 would end the timer.
        spec.it_value.tv_sec = (time_t)(deadline / SECOND);
        spec.it_value.tv_nsec = (long)(deadline % SECOND) * 1000 + 1;
    }
    timerfd_settime(app->timer, TFD_TIMER_ABSTIME, &spec, NULL);
}

/// Whether the next dispatch has something to do that is in memory.
static bool has_work(greenroom_app *app) {
    return app->events || app->replies || (app->is_ended && !app->has_left) || task_has_expired(app);
}

void loop_arm(greenroom_app *app) {
    if (mode_of(app) == MODE_CHILD)
        return;
    if (mode_of(app) == MODE_LIVE) {
        arm_bus(app);
        arm_timer(app);
    }
    bool is_pending = has_work(app);
    if (is_pending == app->is_pending)
        return;
    app->is_pending = is_pending;
    uint64_t value = 1;
    ssize_t n = is_pending ? write(app->pending, &value, sizeof value) : read(app->pending, &value, sizeof value);
    (void)n;
}

// MARK: The program's loop

PUBLIC int greenroom_get_fd(greenroom_app *app) {
    if (!app)
        return -EINVAL;
    loop_arm(app);
    return app->epoll;
}

PUBLIC void greenroom_wake(greenroom_app *app) {
    uint64_t value = 1;
    int error = errno;
    ssize_t n = app ? write(app->wake, &value, sizeof value) : 0;
    (void)n;
    errno = error;
}

PUBLIC int greenroom_wait(greenroom_app *app, uint64_t timeout_usec) {
    if (!app)
        return -EINVAL;
    if (mode_of(app) == MODE_CHILD)
        return fail_child(app, "greenroom_wait");
    loop_arm(app);
    struct timespec span = {.tv_sec = (time_t)(timeout_usec / SECOND), .tv_nsec = (long)(timeout_usec % SECOND) * 1000};
    struct pollfd polled[] = {{.fd = app->epoll, .events = POLLIN}, {.fd = app->wake, .events = POLLIN}};
    int r = ppoll(polled, 2, timeout_usec == GREENROOM_UNLIMITED ? NULL : &span, NULL);
    if (r < 0)
        return errno == EINTR ? 0 : -errno;
    uint64_t value;
    if (polled[1].revents && read(app->wake, &value, sizeof value) < 0 && errno != EAGAIN)
        return -errno;
    return polled[0].revents != 0;
}

static int handle_events(greenroom_app *app) {
    int r = 0;
    // A handler may fork, and return in the child.
    while (r >= 0 && mode_of(app) != MODE_CHILD) {
        signals_read(app);
        call_deliver_replies(app);
        task_tell_expired(app);
        struct event *event = app->is_ended ? NULL : event_take(app);
        if (!event)
            break;
        r = event_handle(app, &event->public);
        event_free(event);
    }
    return r;
}

PUBLIC int greenroom_dispatch(greenroom_app *app) {
    if (!app)
        return -EINVAL;
    if (app->is_dispatching)
        return fail(app, -EBUSY, "greenroom_dispatch was called by a handler.");
    int r = greenroom_start(app);
    if (r < 0)
        return r;
    app->is_dispatching = true;
    connection_pump(app);
    r = handle_events(app);
    if (app->is_ended && !app->has_left) {
        app->has_left = true;
        if (mode_of(app) == MODE_LIVE)
            connection_flush(app, FLUSH_USEC);
    }
    app->is_dispatching = false;
    loop_arm(app);
    return r < 0 ? r : !app->is_ended;
}

PUBLIC int greenroom_run(greenroom_app *app) {
    if (!app)
        return -EINVAL;
    bool catches = !signals_are_caught(app) && mode_of(app) != MODE_CHILD && signals_catch(app) >= 0;
    int r;
    while ((r = greenroom_dispatch(app)) > 0 && (r = greenroom_wait(app, GREENROOM_UNLIMITED)) >= 0)
        continue;
    if (catches && mode_of(app) != MODE_CHILD)
        signals_release(app);
    return r;
}
