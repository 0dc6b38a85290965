/* Background tasks. */
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static void free_task(greenroom_task *task) {
    free(task->name);
    free(task);
}

static int new_task(greenroom_app *app, const char *name, greenroom_task **ret) {
    if (!app || !ret)
        return -EINVAL;
    *ret = NULL;
    if (!name)
        return fail(app, -EINVAL, "greenroom_task_begin: expected a name.");
    unsigned char random[16];
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return fail(app, -EIO, "greenroom_task_begin: there are no random numbers.");
    greenroom_task *task = calloc(1, sizeof *task);
    if (!task || !(task->name = strdup(name))) {
        free(task);
        return fail_memory(app);
    }
    // The same token again is the same task, so a call that is repeated begins no second one.
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(task->token + 2 * i, 3, "%02x", random[i]);
    task->app = app;
    task->next = app->tasks;
    app->tasks = task;
    *ret = task;
    return 0;
}

static void unlink_task(greenroom_task *task) {
    for (greenroom_task **link = task->app ? &task->app->tasks : NULL; link && *link; link = &(*link)->next) {
        if (*link == task) {
            *link = task->next;
            break;
        }
    }
    task->next = NULL;
    task->app = NULL;
}

static void send_end(greenroom_app *app, const char *token) {
    struct call *call = call_new(app, "EndTask", ARGUMENTS_TASK, VALUES_NONE);
    if (!call)
        return;
    strcpy(call->token, token);
    call_must(call);
}

static int begin_call(greenroom_task *task, const char *name, struct call **ret) {
    greenroom_app *app = task->app;
    struct call *call = call_new(app, "BeginTask", ARGUMENTS_TASK, VALUES_TIME);
    if (!call)
        return fail_memory(app);
    int r = call_set_text(call, name);
    if (r < 0) {
        call_free(call);
        return r;
    }
    call->usec = GREENROOM_UNLIMITED;
    call->task = task;
    strcpy(call->token, task->token);
    *ret = call;
    return 0;
}

/// Ends a task that has not begun.
static int give_up(greenroom_task **ret, int error) {
    unlink_task(*ret);
    free_task(*ret);
    *ret = NULL;
    return error;
}

PUBLIC int greenroom_task_begin(greenroom_app *app, const char *name, greenroom_task **ret) {
    int r = new_task(app, name, ret);
    if (r < 0 || mode_of(app) != MODE_LIVE)
        return r;
    struct call *call = NULL;
    r = begin_call(*ret, name, &call);
    if (r < 0)
        return give_up(ret, r);
    r = call_wait(call);
    if (r == -ETIMEDOUT)
        task_refused(app, call->token);
    call_free(call);
    return r < 0 ? give_up(ret, r) : 0;
}

PUBLIC int greenroom_task_begin_async(greenroom_app *app, const char *name, greenroom_task **ret, greenroom_reply_handler_t reply,
                                      void *userdata) {
    int r = new_task(app, name, ret);
    if (r < 0)
        return r;
    struct call *call = NULL;
    r = begin_call(*ret, name, &call);
    r = r < 0 ? r : call_finish(call, true, reply, userdata);
    return r < 0 ? give_up(ret, r) : 0;
}

void task_refused(greenroom_app *app, const char *token) {
    // A call without a reply may have arrived. After a refusal the end is refused, too.
    for (greenroom_task *task = app->tasks; task; task = task->next) {
        if (strcmp(task->token, token) != 0)
            continue;
        unlink_task(task);
        break;
    }
    send_end(app, token);
}

PUBLIC greenroom_task *greenroom_task_end(greenroom_task *task) {
    if (!task)
        return NULL;
    greenroom_app *app = task->app;
    if (app && mode_of(app) == MODE_LIVE) {
        for (struct call *call = app->calls; call; call = call->next)
            if (call->task == task)
                call->task = NULL;
        unlink_task(task);
        send_end(app, task->token);
    } else
        unlink_task(task);
    free_task(task);
    return NULL;
}

void task_leave_all(greenroom_app *app) {
    while (app->tasks)
        unlink_task(app->tasks);
}

// MARK: Progress

/// What comes sooner after the last report is left out.
#define PROGRESS_USEC ((uint64_t)100000)

PUBLIC int greenroom_task_progress(greenroom_task *task, uint64_t done, uint64_t total, const char *title) {
    if (!task)
        return -EINVAL;
    greenroom_app *app = task->app;
    if (!app || mode_of(app) != MODE_LIVE)
        return 0;
    title = title ? title : "";
    if (strlen(title) > MAX_TITLE)
        return fail(app, -EMSGSIZE, "greenroom_task_progress: the title has %zu bytes; expected at most %d.", strlen(title), MAX_TITLE);
    bool is_end = total > 0 && done >= total;
    if (task->reported && !is_end && strcmp(title, task->title) == 0 && now_usec() - task->reported < PROGRESS_USEC)
        return 0;
    struct call *call = call_new(app, "SetTaskProgress", ARGUMENTS_PROGRESS, VALUES_NONE);
    if (!call)
        return fail_memory(app);
    int r = call_set_text(call, task->name);
    if (r >= 0 && !(call->type = strdup(title)))
        r = fail_memory(app);
    if (r < 0) {
        call_free(call);
        return r;
    }
    call->done = done;
    call->total = total;
    strcpy(call->token, task->token);
    strcpy(task->title, title);
    task->reported = now_usec();
    return call_latest(call);
}

PUBLIC const char *greenroom_task_get_name(greenroom_task *task) { return task ? task->name : NULL; }

// MARK: Expiry

void task_mark_expiring(greenroom_app *app, const char *const *names) {
    for (greenroom_task *task = app->tasks; task; task = task->next)
        for (const char *const *name = names; *name && !task->is_expiring; name++)
            task->is_expiring = strcmp(*name, task->name) == 0;
}

PUBLIC int greenroom_task_is_expiring(greenroom_task *task) {
    if (!task)
        return 0;
    if (task->app && mode_of(task->app) == MODE_LIVE) {
        connection_pump(task->app);
        loop_arm(task->app);
    }
    return task->is_expiring;
}

PUBLIC void greenroom_task_set_expired(greenroom_task *task, greenroom_expired_t expired, void *userdata) {
    if (!task)
        return;
    task->expired = expired;
    task->userdata = userdata;
    if (task->app)
        loop_arm(task->app);
}

static greenroom_task *next_expired(greenroom_app *app) {
    greenroom_task *task = app->tasks;
    while (task && !(task->is_expiring && !task->is_notified && task->expired))
        task = task->next;
    return task;
}

bool task_has_expired(greenroom_app *app) { return next_expired(app) != NULL; }

void task_tell_expired(greenroom_app *app) {
    // A handler may end any task.
    for (greenroom_task *task; (task = next_expired(app));) {
        task->is_notified = true;
        task->expired(task, task->userdata);
    }
}

// MARK: Time

static int remaining_time(greenroom_app *app, struct call **ret) {
    struct call *call = call_new(app, "RemainingTime", ARGUMENTS_NONE, VALUES_TIME);
    if (!call)
        return fail_memory(app);
    call->usec = GREENROOM_UNLIMITED;
    *ret = call;
    return 0;
}

PUBLIC int greenroom_remaining_time(greenroom_app *app, uint64_t *ret_usec) {
    if (!app || !ret_usec)
        return -EINVAL;
    *ret_usec = GREENROOM_UNLIMITED;
    if (mode_of(app) != MODE_LIVE)
        return 0;
    struct call *call = NULL;
    int r = remaining_time(app, &call);
    if (r < 0)
        return r;
    r = call_wait(call);
    if (r >= 0)
        *ret_usec = call->usec;
    call_free(call);
    return r;
}

PUBLIC int greenroom_remaining_time_async(greenroom_app *app, greenroom_reply_handler_t reply, void *userdata) {
    if (!app)
        return -EINVAL;
    struct call *call = NULL;
    int r = remaining_time(app, &call);
    return r < 0 ? r : call_finish(call, true, reply, userdata);
}
