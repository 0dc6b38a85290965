/*
 * libgreenroom: takes part in the app lifecycle of Greenroom. libgreenroom(3) is a guide with examples.
 *
 *     static int on_background(greenroom_app *app, const greenroom_event *event, void *state) {
 *         return greenroom_save_state(app, state, strlen(state));
 *     }
 *
 *     int main(void) {
 *         greenroom_app *app;
 *         char state[] = "page 1";
 *         if (greenroom_app_new(&app) < 0)
 *             return 1;
 *         greenroom_set_handler(app, GREENROOM_DID_ENTER_BACKGROUND, on_background, state);
 *         int r = greenroom_run(app);
 *         greenroom_app_free(app);
 *         return r < 0;
 *     }
 *
 * Conventions of all functions:
 *
 * - They return 0 or a positive number, or a negative errno. -EPERM: greenroomd refused the request, and greenroom_last_error()
 *   is its sentence. -ETIMEDOUT: greenroomd did not answer within 10 s, for example because it is being restarted; the app
 *   continues to run. -ENOBUFS: more than 1,000 calls or 16 MiB of them wait for greenroomd. -EINVAL: an argument is invalid.
 *   -ENOMEM.
 * - Outside of Greenroom, and in a child made by fork, the object is inert: the same program runs, tasks and reports do
 *   nothing, and the state is a file. greenroom_is_inert() describes it.
 * - If greenroomd is killed or replaced, the library connects again, repeats calls without an answer, and neither misses nor
 *   repeats an event.
 * - An object is not thread-safe: one thread at a time may use it and its tasks. Only greenroom_wake() may be called at any
 *   time from any thread. The library starts no threads.
 * - Functions that wait for greenroomd (their description says so) call no handler meanwhile. Events that arrive are kept in
 *   order for greenroom_dispatch(). All may be called by handlers. Those that ask for a
 *   change, the time or the state have a variant that does not wait (..._async).
 * - Strings are UTF-8 with a NUL. Strings and arrays that the library returns or passes to a handler belong to it; their
 *   description says until when they are valid. Strings that it gets are copied.
 * - The ABI is stable. Later releases add functions, constants and fields at the ends of the structs, which only the library
 *   allocates. A program ignores values that it does not know.
 */
#ifndef GREENROOM_H
#define GREENROOM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The connection of an app to greenroomd. A process has one. */
typedef struct greenroom_app greenroom_app;

/* A background task: while one is open, the app is not suspended. */
typedef struct greenroom_task greenroom_task;

/* A time span without a limit. Time spans are in microseconds. */
#define GREENROOM_UNLIMITED UINT64_MAX

/* The kinds of events, and the fields of greenroom_event that they have. */
typedef enum greenroom_kind {
    GREENROOM_OPEN_URL = 1,             /* The app is to open a URL. url, scene */
    GREENROOM_DID_BECOME_ACTIVE = 2,    /* It is in front and gets input. cause: launch, return or interruptionEnded */
    GREENROOM_WILL_RESIGN_ACTIVE = 3,   /* It stops being active. cause: interruption or background */
    GREENROOM_WILL_ENTER_FOREGROUND = 4, /* It returns from the background */
    GREENROOM_DID_ENTER_BACKGROUND = 5, /* It has left the foreground: save the state. remaining_usec to answer. Answered */
    GREENROOM_WILL_TERMINATE = 6,       /* It will be ended, and may be killed once it has answered. reason, remaining_usec. Answered */
    GREENROOM_MEMORY_WARNING = 7,       /* Memory is short. level: warning or critical */
    GREENROOM_TASKS_EXPIRING = 8,       /* The background time ends with these tasks open. names, remaining_usec */
    GREENROOM_PUSH = 9,                 /* A push has arrived. payload, id. Answered with a result */
    GREENROOM_WAKE = 10,                /* Another wake, for example to fetch. reason, id. Answered with a result */
    GREENROOM_NOTIFICATION = 11,        /* Something has changed. notification (for example locale), payload */
    GREENROOM_WILL_SUSPEND = 12,        /* The app will be suspended at once; a handler may be cut short by that */
    GREENROOM_DID_RESUME = 13,          /* It was suspended. suspended_usec; names: the kinds of notifications meanwhile */
    GREENROOM_SCENE = 14,               /* One of its scenes has changed. scene, notice: sceneWillConnect, sceneDidBecomeActive, …, reason */
    GREENROOM_TAKE_SNAPSHOT = 15,       /* A picture of it is wanted: greenroom_save_snapshot_as(), within 500 ms. Answered */
    GREENROOM_TAKE_SCENE_SNAPSHOT = 16, /* The same of a scene: greenroom_save_scene_snapshot(). scene. Answered */
    GREENROOM_DID_DISCARD_SCENES = 17,  /* A user has closed these scenes: they do not come back. names */
    GREENROOM_WITHDRAW = 18,            /* It will be suspended: take back what is advertised, until GREENROOM_DID_RESUME. Answered */
} greenroom_kind;

/*
 * An event. It is valid until the handler returns. A field that the kind does not have is NULL or 0; a text that it has is not
 * NULL.
 */
typedef struct greenroom_event {
    greenroom_kind kind;
    /* Counts up over the life of the process, with gaps. 0: it does not come from greenroomd (signals, outside of Greenroom). */
    uint64_t serial;
    const char *url;
    const char *cause;
    const char *reason;
    const char *level;
    const char *payload;
    /* The kind of a notification. */
    const char *notification;
    /* The number of a push or a wake, as in the name of its file in the inbox. */
    uint64_t id;
    /* n_names texts, then NULL. */
    const char *const *names;
    size_t n_names;
    /* GREENROOM_UNLIMITED if there is no limit. */
    uint64_t remaining_usec;
    uint64_t suspended_usec;
    /* The name of a scene, and what becomes of it. */
    const char *scene;
    const char *notice;
} greenroom_event;

/* How an event was handled: what a handler returns, and greenroom_answer() gets. */
enum {
    /* The event is handled. A push or a wake has led to new data. */
    GREENROOM_NEW_DATA = 0,
    /* A push or a wake has led to no new data. Also for other events: it is handled. */
    GREENROOM_NO_DATA = 1,
    /* The handler failed. A push or a wake has failed; other events count as handled. Every negative number means the same. */
    GREENROOM_FAILED = 2,
    /* The program answers the event later, with greenroom_answer(). */
    GREENROOM_LATER = 3,
};

/*
 * Handles an event. Its return is the answer, if the event is to be answered: GREENROOM_NEW_DATA, GREENROOM_NO_DATA,
 * GREENROOM_FAILED, GREENROOM_LATER or a negative errno, which is logged. A handler must not free the app.
 */
typedef int (*greenroom_handler_t)(greenroom_app *app, const greenroom_event *event, void *userdata);

/* Returns the name of a kind in D-Bus and in the documents, for example "didBecomeActive", or NULL if there is no such kind. */
const char *greenroom_kind_to_string(greenroom_kind kind);

/*
 * Returns the kind with this name, or -EINVAL. The kinds are all numbers from 1 for which greenroom_kind_to_string() has a
 * name.
 */
int greenroom_kind_from_string(const char *name);

/* ---- The app */

/*
 * Creates the object, from the environment variables that Greenroom sets. It does not wait; the connection is made with the
 * first call that needs it. The program frees it with greenroom_app_free(). Returns -EINVAL if GREENROOM_BUS_ADDRESS names no
 * Unix socket.
 */
int greenroom_app_new(greenroom_app **ret);

/*
 * Frees the object and closes the connection. Waits first, for 1 s at most, until greenroomd has got what was sent. Answers and
 * ends of tasks that are missing are not sent: greenroomd keeps waiting for them. Tasks remain valid for greenroom_task_end().
 * NULL is allowed. Returns NULL.
 */
greenroom_app *greenroom_app_free(greenroom_app *app);

/*
 * Returns 1 if the object is inert: Greenroom did not launch this process, or it is a child of the process that created the
 * object. Returns 0 otherwise.
 *
 * Outside of Greenroom, greenroom_start() sends READY=1 to a service manager (sd_notify(3)) and lets the app become active;
 * status, heartbeat and stopping go there as well; the state is the file restoration-state in the folder STATE_DIRECTORY, if
 * that is set; all else succeeds without effect.
 *
 * In a child made by fork, these return -ECHILD: the functions of the state, and greenroom_run(), greenroom_start(),
 * greenroom_dispatch(), greenroom_wait(), greenroom_catch_signals(), greenroom_request_end() and greenroom_answer(). All others
 * succeed without effect. The child may free the object.
 */
int greenroom_is_inert(greenroom_app *app);

/*
 * Sets the handler of a kind of events; NULL removes it. greenroomd sends an app the kinds for which it has handlers; for
 * others the signals of its manifest are used. Set the handlers before greenroom_start(), so that nothing is sent in another
 * way. An app that handles GREENROOM_DID_ENTER_BACKGROUND has to answer it in time.
 */
int greenroom_set_handler(greenroom_app *app, greenroom_kind kind, greenroom_handler_t handler, void *userdata);

/*
 * Receives the warnings of the library, one line each without a newline. priority: as of syslog(3). The default, NULL, writes
 * them to standard error. It must not call functions of this library.
 */
typedef void (*greenroom_log_t)(int priority, const char *message, void *userdata);
void greenroom_set_log(greenroom_app *app, greenroom_log_t log, void *userdata);

/* Sets the name and version that greenroomd logs, for libraries of other languages. Call it before greenroom_start(). */
int greenroom_set_library(greenroom_app *app, const char *library);

/*
 * Returns the sentence of the last error of this object, for people, or "" if there was none. It is valid until the next call
 * with the object or one of its tasks.
 */
const char *greenroom_last_error(greenroom_app *app);

/*
 * Returns the D-Bus name of the last error, for example "org.greenroom.Error.NotOpen", or "" if greenroomd did not send it. It
 * is valid as long as greenroom_last_error().
 */
const char *greenroom_last_error_name(greenroom_app *app);

/* ---- The loop */

/*
 * Finishes launching: takes part, and reports that the app is ready. It does not wait. greenroom_run() and greenroom_dispatch()
 * do it first, so a program calls it only to be ready earlier. Call greenroom_restore_state() before it.
 */
int greenroom_start(greenroom_app *app);

/*
 * Calls the handlers until the app has to end, or greenroom_stop() was called; then returns 0. SIGTERM and SIGINT are
 * GREENROOM_WILL_TERMINATE meanwhile, unless the program handles or ignores them.
 */
int greenroom_run(greenroom_app *app);

/*
 * Returns a descriptor for the program's own event loop: when it is readable (POLLIN), greenroom_dispatch() has something to
 * do. It is the same over the life of the object, which owns it, and needs no timeout. A child made by fork must not use it.
 */
int greenroom_get_fd(greenroom_app *app);

/*
 * Handles what has arrived, without waiting, and returns 1 if the app continues to run. Returns 0 if it has to end: the handler
 * of GREENROOM_WILL_TERMINATE has answered, or greenroom_stop() was called. The first call that returns 0 waits, for 1 s at
 * most, until greenroomd has got what was sent. Returns -EBUSY in a handler.
 */
int greenroom_dispatch(greenroom_app *app);

/*
 * Waits until greenroom_dispatch() has something to do, for timeout_usec at most (GREENROOM_UNLIMITED: without a limit).
 * Returns 1 if it has, otherwise 0: also after a signal handler and after greenroom_wake().
 */
int greenroom_wait(greenroom_app *app, uint64_t timeout_usec);

/* Ends a greenroom_wait(): the one that waits, or the next one. Any thread and signal handlers may call it. */
void greenroom_wake(greenroom_app *app);

/*
 * Lets SIGTERM and SIGINT be GREENROOM_WILL_TERMINATE with the name of the signal as the reason, from now until
 * greenroom_app_free(). Signals that the program handles or ignores are left alone. greenroom_run() does it while it runs.
 * Returns -EBUSY if another object of the process does it.
 */
int greenroom_catch_signals(greenroom_app *app);

/*
 * Ends the app as if GREENROOM_WILL_TERMINATE had arrived, with this reason. For programs that handle signals themselves.
 * Returns -EINVAL if reason is NULL.
 */
int greenroom_request_end(greenroom_app *app, const char *reason);

/* Ends greenroom_run() without the handler of GREENROOM_WILL_TERMINATE, and tells Greenroom that the app ends by itself. */
int greenroom_stop(greenroom_app *app);

/*
 * Answers an event whose handler has returned GREENROOM_LATER, in any order. result: GREENROOM_NEW_DATA, GREENROOM_NO_DATA or
 * GREENROOM_FAILED. It does not wait. Returns -ENOENT if no event with this serial waits for its answer.
 */
int greenroom_answer(greenroom_app *app, uint64_t serial, int result);

/* ---- The launch, and the process before */

/* How and why this process was launched. Without Greenroom it is a launch by the user into the foreground. */
typedef struct greenroom_launch {
    /* The ID of the app, or "" without Greenroom. */
    const char *app;
    /* user, url, push, fetch, socket, timer, accessory, location or relaunch. */
    const char *reason;
    /* The URL of a launch with the reason url, or NULL. It is also an event. */
    const char *url;
    /* The directory with a file for each notification, or NULL. */
    const char *inbox;
    /* A file with the receipt of the last end, in JSON, or NULL: what greenroom_last_end() has, and more. */
    const char *last_receipt;
    /* Whether the app was launched into the foreground. */
    int foreground;
    /* Whether this is the first launch of the app. */
    int first;
} greenroom_launch;

/* Returns the launch. It is valid until greenroom_app_free(). */
const greenroom_launch *greenroom_get_launch(greenroom_app *app);

/* How a process of the app ended: its receipt. docs/RULES.md has the codes. */
typedef struct greenroom_end {
    /* The number of the receipt. */
    uint64_t id;
    /* Microseconds since 1970. */
    uint64_t time_usec;
    /* The state in which the end began, for example suspended. */
    const char *state;
    /* watchdog, lifecycle, user, resource, jetsam, signal or exit. */
    const char *name_space;
    /* The code in its namespace: "0", "0x8badf00d". */
    const char *code;
    /* One sentence, the cause first. */
    const char *explanation;
    /* -1 if the main process did not exit by itself. */
    int exit_status;
    /* The signal that ended the main process, or 0. */
    int signal;
    /* Whether there is a core dump. */
    int core_dumped;
} greenroom_end;

/*
 * Gets how the previous process of the app ended. It is known after greenroom_start(); waits until greenroomd has answered
 * that. It is valid until greenroom_app_free(). Returns 1, or 0 with NULL if there was no end, also without Greenroom; -EAGAIN
 * before greenroom_start().
 */
int greenroom_last_end(greenroom_app *app, const greenroom_end **ret);

/* Gets what the previous process of the app passed to greenroom_set_summary(); otherwise as greenroom_last_end(). */
int greenroom_last_summary(greenroom_app *app, const char **ret);

/* ---- Answers of calls that do not wait */

/* The answer to a call. It is valid until the function that gets it returns. */
typedef struct greenroom_reply {
    /* 0, or the negative errno that the waiting variant would return. */
    int error;
    /* As greenroom_last_error() and greenroom_last_error_name(). */
    const char *sentence;
    const char *error_name;
    /* Of greenroom_task_begin_async() and greenroom_remaining_time_async(). */
    uint64_t remaining_usec;
    /* Of greenroom_restore_state_async(): NULL if there is no state. A NUL follows the data. */
    const void *data;
    size_t size;
} greenroom_reply;

/*
 * Gets the answer to a call. greenroom_dispatch() calls it, never the function that it was passed to; once for each call that
 * returned 0, except for calls that wait when the app is freed. There is no timeout: a daemon that is away answers when it is
 * back.
 */
typedef void (*greenroom_reply_handler_t)(greenroom_app *app, const greenroom_reply *reply, void *userdata);

/* ---- Background tasks */

/*
 * Begins a task and waits for the answer. name: 1 to 128 bytes without control characters, for people. Returns -EPERM if the
 * app has no background time. The program ends it with greenroom_task_end(). On failure *ret is NULL.
 */
int greenroom_task_begin(greenroom_app *app, const char *name, greenroom_task **ret);

/*
 * Begins a task without waiting. If the answer is a refusal, the task is over and only greenroom_task_end() may be called.
 * reply may be NULL.
 */
int greenroom_task_begin_async(greenroom_app *app, const char *name, greenroom_task **ret, greenroom_reply_handler_t reply,
                               void *userdata);

/*
 * Reports how far the task is, for the user, and does not wait. done and total are at most 2^53; total 0: it is not known. title:
 * at most 128 bytes; NULL or empty: the last one stays. A task with a title that began in the foreground may continue in the
 * background for as long as done grows. It may be called as often as the work advances: what comes within 100 ms of the last
 * report is left out, except for the end (done == total).
 */
int greenroom_task_progress(greenroom_task *task, uint64_t done, uint64_t total, const char *title);

/* Ends a task and frees it. It does not wait. NULL is allowed. Returns NULL. */
greenroom_task *greenroom_task_end(greenroom_task *task);

/*
 * Returns 1 if the background time ends: finish now, or the app is killed (5 s later by default). It looks for what has
 * arrived, so work that does not return to a loop may call it.
 */
int greenroom_task_is_expiring(greenroom_task *task);

/* Returns the name. It is valid until greenroom_task_end(). */
const char *greenroom_task_get_name(greenroom_task *task);

/*
 * Called by greenroom_dispatch() when the background time ends, once for each task that is open, before the handler of
 * GREENROOM_TASKS_EXPIRING. It may end the task.
 */
typedef void (*greenroom_expired_t)(greenroom_task *task, void *userdata);

/*
 * Sets what is called when the task expires; NULL: nothing. If it is expiring already, the next greenroom_dispatch() calls it.
 */
void greenroom_task_set_expired(greenroom_task *task, greenroom_expired_t expired, void *userdata);

/*
 * Gets the background time that is left, of all tasks together, and waits for the answer. GREENROOM_UNLIMITED in the foreground
 * and without Greenroom.
 */
int greenroom_remaining_time(greenroom_app *app, uint64_t *ret_usec);
int greenroom_remaining_time_async(greenroom_app *app, greenroom_reply_handler_t reply, void *userdata);

/* ---- State */

/*
 * Saves the restoration state, at most 1 MiB of any bytes, and waits for the answer. It replaces the state before. Returns
 * -EMSGSIZE if it is too large.
 */
int greenroom_save_state(greenroom_app *app, const void *data, size_t size);
int greenroom_save_state_async(greenroom_app *app, const void *data, size_t size, greenroom_reply_handler_t reply, void *userdata);

/*
 * Gets the state that an earlier process saved, and waits for the answer. Returns 1 and memory that the program frees with
 * free(3); a NUL, which is not counted, follows the data. Returns 0 and NULL if there is no state. An app that does not want
 * the state does not ask.
 */
int greenroom_restore_state(greenroom_app *app, void **ret, size_t *ret_size);
int greenroom_restore_state_async(greenroom_app *app, greenroom_reply_handler_t reply, void *userdata);

/*
 * The same for the restoration state of a scene: at most 1 MiB each, 64 MiB of all together. A state is removed when its scene is ended
 * (greenroom_end_scene()), not when it is disconnected.
 */
int greenroom_save_scene_state(greenroom_app *app, const char *scene, const void *data, size_t size);
int greenroom_restore_scene_state(greenroom_app *app, const char *scene, void **ret, size_t *ret_size);

/* Removes the restoration state, so that the next process begins anew, and waits for the answer. */
int greenroom_drop_state(greenroom_app *app);
int greenroom_drop_state_async(greenroom_app *app, greenroom_reply_handler_t reply, void *userdata);

/*
 * Saves a picture of the app that is shown while it returns, at most 8 MiB, and waits for the answer. Returns -EMSGSIZE if it
 * is too large.
 */
int greenroom_save_snapshot(greenroom_app *app, const void *data, size_t size);
int greenroom_save_snapshot_async(greenroom_app *app, const void *data, size_t size, greenroom_reply_handler_t reply,
                                  void *userdata);

/*
 * The same for a snapshot of another media type than image/png, for example "image/jpeg", or "text/plain" in UTF-8; NULL: a PNG.
 * An app that has a handler of GREENROOM_TAKE_SNAPSHOT is asked when it has answered that it is in the background, and after a
 * wake that has led to new data. The handler calls one of these functions, and its return is the answer. The app is suspended
 * 500 ms later at the latest, whatever it has done.
 */
int greenroom_save_snapshot_as(greenroom_app *app, const void *data, size_t size, const char *type);
int greenroom_save_snapshot_as_async(greenroom_app *app, const void *data, size_t size, const char *type,
                                     greenroom_reply_handler_t reply, void *userdata);

/*
 * The same for the snapshot of a scene: at most 8 MiB each, 64 MiB of all of these together. It is removed when its scene is ended. An
 * app that has a handler of GREENROOM_TAKE_SCENE_SNAPSHOT is asked when the scene has entered the background, and after a wake that
 * has led to new data for the scene that was in front last.
 */
int greenroom_save_scene_snapshot(greenroom_app *app, const char *scene, const void *data, size_t size, const char *type);

/* ---- What the app says about itself */

/* Sets the text that `greenroomctl status` shows. It does not wait. Returns -EMSGSIZE if it has more than 32 KiB. */
int greenroom_set_status(greenroom_app *app, const char *text);

/*
 * Describes the state of the app for its next process (greenroom_last_summary()), in at most 1 KiB, and waits for the answer.
 */
int greenroom_set_summary(greenroom_app *app, const char *text);
int greenroom_set_summary_async(greenroom_app *app, const char *text, greenroom_reply_handler_t reply, void *userdata);

/* Tells that the app is alive, for WatchdogSec=. It does not wait. */
int greenroom_heartbeat(greenroom_app *app);

/*
 * Begins and ends a background mode: "audio", "recording", "call", "location", "accessory" or "processing". The manifest must declare it
 * (BackgroundModes=). The app is not suspended while the mode is on; it is on or off for the whole app, however often it is begun. Both
 * wait for the answer. A negative value: the mode is refused, and greenroom_last_error() has the reason.
 */
int greenroom_begin_mode(greenroom_app *app, const char *mode);
int greenroom_end_mode(greenroom_app *app, const char *mode);

/*
 * Begins a scene with this name, or shows one that the app has, and ends one. The role is "window", "external" or "panel"; NULL is a
 * window. Each app begins with the scene "main". Both wait for the answer.
 */
int greenroom_begin_scene(greenroom_app *app, const char *scene, const char *role);
int greenroom_end_scene(greenroom_app *app, const char *scene);

/* Hints that the app has nothing to do until something arrives (1), or has (0). It does not wait. */
int greenroom_set_idle(greenroom_app *app, int idle);

#ifdef __cplusplus
}
#endif

#endif
