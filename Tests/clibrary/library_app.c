/* library_app TEST: tests what the transcripts of contract_app.c do not show of libgreenroom. Each TEST but "outside" and "away" has a
 * transcript. Exit status 1: a check failed, and its line is on standard error. */
#include <greenroom.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                         \
    do {                                                                         \
        if (!(condition)) {                                                      \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
            _exit(1);                                                            \
        }                                                                        \
    } while (0)

static greenroom_app *app;
static greenroom_task *task;
static int count;
static bool has_lost;

static greenroom_app *new_app(void) {
    greenroom_app *new;
    CHECK(greenroom_app_new(&new) == 0);
    return new;
}

static bool is_readable(int descriptor) {
    struct pollfd polled = {.fd = descriptor, .events = POLLIN};
    return poll(&polled, 1, 0) == 1;
}

/// A loop of the program's own, which knows only the descriptor.
static void loop(void) {
    int descriptor = greenroom_get_fd(app), r;
    while ((r = greenroom_dispatch(app)) > 0) {
        struct pollfd polled = {.fd = descriptor, .events = POLLIN};
        CHECK(poll(&polled, 1, -1) == 1);
    }
    CHECK(r == 0 && greenroom_dispatch(app) == 0 && greenroom_get_fd(app) == descriptor);
}

static int count_event(greenroom_app *own, const greenroom_event *event, void *userdata) {
    CHECK(own == app && event->serial == (userdata ? *(uint64_t *)userdata : 0));
    count++;
    return 0;
}

// MARK: Without a daemon

static void expect_message(int messages, const char *expected) {
    char text[256];
    ssize_t n = recv(messages, text, sizeof text - 1, MSG_DONTWAIT);
    text[n > 0 ? n : 0] = 0;
    CHECK(strcmp(text, expected) == 0);
}

static void count_reply(greenroom_app *own, const greenroom_reply *reply, void *userdata) {
    CHECK(own == app && reply->error == 0 && strcmp(reply->sentence, "") == 0);
    count += *(int *)userdata;
}

static void check_state_file(void) {
    void *data = &data;
    size_t size = 1;
    CHECK(greenroom_restore_state(app, &data, &size) == 0 && !data && size == 0);
    CHECK(greenroom_save_state(app, "a\0b", 3) == 0 && greenroom_save_state(app, "a\0c", 3) == 0);
    CHECK(greenroom_restore_state(app, &data, &size) == 1 && size == 3 && memcmp(data, "a\0c", 4) == 0);
    free(data);
    char *large = calloc(1, (1 << 20) + 1);
    CHECK(greenroom_save_state(app, large, (1 << 20) + 1) == -EMSGSIZE);
    CHECK(strcmp(greenroom_last_error(app), "The restoration state has 1048577 bytes; at most 1048576 are kept.") == 0);
    CHECK(greenroom_save_state(app, large, 1 << 20) == 0 && greenroom_save_snapshot(app, large, 1 << 20) == 0);
    free(large);
    CHECK(greenroom_save_state(app, NULL, 1) == -EINVAL && greenroom_save_state(app, NULL, 0) == 0);
    CHECK(greenroom_restore_state(app, &data, NULL) == 1);
    free(data);
    CHECK(greenroom_drop_state(app) == 0 && greenroom_drop_state(app) == 0);
    CHECK(greenroom_restore_state(app, &data, NULL) == 0);
    setenv("STATE_DIRECTORY", "/proc/none", 1);
    CHECK(greenroom_save_state(app, "a", 1) == -ENOENT && *greenroom_last_error(app));
    unsetenv("STATE_DIRECTORY");
    CHECK(greenroom_save_state(app, "a", 1) == 0 && greenroom_restore_state(app, &data, NULL) == 0);
}

static int listen_for_messages(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/notify", getenv("STATE_DIRECTORY"));
    int messages = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(bind(messages, (struct sockaddr *)&address, sizeof address) == 0);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    return messages;
}

/// Calls again, as a program that polls something does.
static void reply_again(greenroom_app *own, const greenroom_reply *reply, void *userdata) {
    (void)reply, (void)userdata;
    count++;
    CHECK(greenroom_remaining_time_async(own, reply_again, NULL) == 0);
}

/// Without Greenroom.
static void outside(void) {
    int messages = listen_for_messages(), one = 1;
    app = new_app();
    const greenroom_launch *launch = greenroom_get_launch(app);
    CHECK(greenroom_is_inert(app) == 1 && strcmp(launch->app, "") == 0 && strcmp(launch->reason, "user") == 0);
    CHECK(launch->foreground && !launch->first && !launch->url && !launch->last_receipt && !launch->inbox);
    check_state_file();
    const greenroom_end *end;
    const char *summary;
    CHECK(greenroom_last_end(app, &end) == 0 && !end && greenroom_last_summary(app, &summary) == 0 && !summary);
    uint64_t remaining = 0;
    CHECK(greenroom_remaining_time(app, &remaining) == 0 && remaining == GREENROOM_UNLIMITED);
    CHECK(greenroom_task_begin(app, "work", &task) == 0 && strcmp(greenroom_task_get_name(task), "work") == 0);
    CHECK(greenroom_task_is_expiring(task) == 0 && greenroom_task_end(task) == NULL);
    CHECK(greenroom_set_handler(app, 99, count_event, NULL) == -EINVAL && *greenroom_last_error(app));
    CHECK(greenroom_set_handler(app, GREENROOM_DID_BECOME_ACTIVE, count_event, NULL) == 0);
    CHECK(greenroom_set_handler(app, GREENROOM_WILL_TERMINATE, count_event, NULL) == 0);
    CHECK(!is_readable(greenroom_get_fd(app)) && greenroom_wait(app, 0) == 0);
    CHECK(greenroom_start(app) == 0 && greenroom_start(app) == 0 && is_readable(greenroom_get_fd(app)) && count == 0);
    expect_message(messages, "READY=1");
    CHECK(greenroom_dispatch(app) == 1 && count == 1 && !is_readable(greenroom_get_fd(app)));
    CHECK(greenroom_set_status(app, "two\nlines") == 0 && greenroom_set_status(app, NULL) == -EINVAL);
    expect_message(messages, "STATUS=two lines");
    CHECK(greenroom_heartbeat(app) == 0 && greenroom_set_idle(app, 1) == 0 && greenroom_set_summary(app, "a") == 0);
    expect_message(messages, "WATCHDOG=1");
    CHECK(greenroom_set_summary_async(app, "a", count_reply, &one) == 0 && greenroom_drop_state_async(app, count_reply, &one) == 0);
    CHECK(greenroom_restore_state_async(app, count_reply, &one) == 0 && greenroom_save_state_async(app, "", 0, NULL, NULL) == 0);
    CHECK(greenroom_task_begin_async(app, "work", &task, count_reply, &one) == 0 && count == 1);
    CHECK(is_readable(greenroom_get_fd(app)) && greenroom_dispatch(app) == 1 && count == 5);
    greenroom_wake(app);
    CHECK(greenroom_wait(app, GREENROOM_UNLIMITED) == 0);
    CHECK(greenroom_request_end(app, "test") == 0 && greenroom_wait(app, GREENROOM_UNLIMITED) == 1);
    CHECK(greenroom_dispatch(app) == 0 && count == 6 && greenroom_run(app) == 0);
    CHECK(greenroom_stop(app) == 0);
    expect_message(messages, "STOPPING=1");
    greenroom_app_free(app);
    greenroom_task_end(task);
    app = new_app();
    CHECK(greenroom_dispatch(app) == 1 && greenroom_stop(app) == 0 && is_readable(greenroom_get_fd(app)));
    CHECK(greenroom_dispatch(app) == 0 && !is_readable(greenroom_get_fd(app)));
    greenroom_app_free(app);
    app = new_app();
    count = 0;
    CHECK(greenroom_start(app) == 0 && greenroom_remaining_time_async(app, reply_again, NULL) == 0);
    CHECK(greenroom_dispatch(app) == 1 && count <= 2);
    greenroom_app_free(app);
    app = new_app();
    CHECK(greenroom_catch_signals(app) == 0 && raise(SIGTERM) == 0 && greenroom_run(app) == 0);
    greenroom_app_free(app);
}

static void ignore_warnings(int priority, const char *message, void *userdata) {
    (void)priority, (void)userdata;
    has_lost = has_lost || strstr(message, "no connection");
}

/// No daemon listens at the address.
static void away(void) {
    const char *wrong[] = {"tcp:host=localhost,port=1", "unixexec:path=/bin/true", "unix:path=/a;tcp:host=b,port=1", "x"};
    for (int i = 0; i < 4; i++) {
        setenv("GREENROOM_BUS_ADDRESS", wrong[i], 1);
        CHECK(greenroom_app_new(&app) == -EINVAL && !app);
    }
    setenv("GREENROOM_BUS_ADDRESS", "unix:path=/proc/none", 1);
    app = new_app();
    greenroom_set_log(app, ignore_warnings, NULL);
    const char *summary;
    CHECK(greenroom_last_summary(app, &summary) == -EAGAIN);
    for (int i = 0; i < 2000; i++)
        CHECK(greenroom_heartbeat(app) == 0 && greenroom_set_idle(app, i % 2) == 0);
    int r = 0, i = 0;
    while (i <= 1000 && (r = greenroom_set_summary_async(app, "a", count_reply, NULL)) == 0)
        i++;
    CHECK(r == -ENOBUFS && i == 998 && has_lost && strstr(greenroom_last_error(app), "too many calls"));
    CHECK(greenroom_task_begin(app, "work", &task) == -ENOBUFS && !task);
    // Free waits for a second.
    greenroom_app_free(app);
    // The memory of a queued state counts.
    static char image[1 << 20];
    app = new_app();
    greenroom_set_log(app, ignore_warnings, NULL);
    for (i = 0; i <= 16 && (r = greenroom_save_snapshot_async(app, image, sizeof image, NULL, NULL)) == 0; i++)
        ;
    CHECK(r == -ENOBUFS && i == 15);
    // What an app must report is queued however much waits.
    CHECK(greenroom_start(app) == 0);
    greenroom_app_free(app);
}

// MARK: With a transcript

static int answer_later(greenroom_app *own, const greenroom_event *event, void *userdata) {
    (void)userdata;
    CHECK(greenroom_dispatch(own) == -EBUSY);
    if (event->kind == GREENROOM_DID_ENTER_BACKGROUND) {
        // Events 1 and 2 are answered in the other order, and only once.
        CHECK(greenroom_answer(own, 2, GREENROOM_NO_DATA) == 0 && greenroom_answer(own, 1, GREENROOM_LATER) == -EINVAL);
        CHECK(greenroom_answer(own, 1, GREENROOM_FAILED) == 0 && greenroom_answer(own, 1, GREENROOM_FAILED) == -ENOENT);
        CHECK(greenroom_answer(own, 0, GREENROOM_FAILED) == -ENOENT && greenroom_answer(own, 3, GREENROOM_FAILED) == -ENOENT);
    }
    if (event->kind == GREENROOM_WILL_TERMINATE)
        CHECK(event->remaining_usec == 2500000);
    return GREENROOM_LATER;
}

static int answer_now(greenroom_app *own, const greenroom_event *event, void *userdata) {
    (void)userdata;
    CHECK(strcmp(event->level, "warning") == 0 && event->names == NULL && event->url == NULL);
    CHECK(greenroom_answer(own, event->serial, 0) == -ENOENT && greenroom_answer(own, event->serial - 1, 0) == 0);
    return -EIO;
}

/// Events are answered later, by a program with its own loop.
static void later(void) {
    CHECK(greenroom_set_library(app, "test 1") == 0);
    greenroom_set_handler(app, GREENROOM_PUSH, answer_later, NULL);
    greenroom_set_handler(app, GREENROOM_DID_ENTER_BACKGROUND, answer_later, NULL);
    greenroom_set_handler(app, GREENROOM_WILL_TERMINATE, answer_later, NULL);
    greenroom_set_handler(app, GREENROOM_MEMORY_WARNING, answer_now, NULL);
    loop();
}

static void note(greenroom_app *own, const greenroom_reply *reply, void *userdata) {
    char text[200];
    snprintf(text, sizeof text, "%s %d [%s] %llu %zu %s", (const char *)userdata, reply->error, reply->sentence,
             (unsigned long long)reply->remaining_usec, reply->size, reply->data ? (const char *)reply->data : "none");
    CHECK(greenroom_set_summary_async(own, text, NULL, NULL) == 0);
}

/// Calls that do not wait.
static void async(void) {
    // Attach precedes calls that wait for a connection, so first there is one.
    uint64_t remaining;
    CHECK(greenroom_remaining_time(app, &remaining) == 0 && remaining == 1500000);
    CHECK(greenroom_restore_state_async(app, note, "restore") == 0);
    CHECK(greenroom_save_state_async(app, "new", 3, note, "save") == 0);
    CHECK(greenroom_save_snapshot_async(app, "picture", 7, note, "snapshot") == 0);
    CHECK(greenroom_drop_state_async(app, note, "drop") == 0);
    CHECK(greenroom_remaining_time_async(app, note, "remaining") == 0);
    CHECK(greenroom_task_begin_async(app, "work", &task, note, "begin") == 0);
    greenroom_task *ended;
    CHECK(greenroom_task_begin_async(app, "ended", &ended, note, "ended") == 0 && greenroom_task_end(ended) == NULL);
    CHECK(greenroom_set_status(app, "two") == 0);
    loop();
    greenroom_task_end(task);
}

/// A task is refused, and no handler learns of it.
static void refused(void) {
    uint64_t remaining;
    CHECK(greenroom_start(app) == 0 && greenroom_remaining_time(app, &remaining) == -EPERM);
    CHECK(strcmp(greenroom_last_error(app), "No.") == 0);
    CHECK(strcmp(greenroom_last_error_name(app), "org.greenroom.Error.Failed") == 0);
    CHECK(greenroom_task_begin_async(app, "refused", &task, NULL, NULL) == 0);
    loop();
    greenroom_task_end(task);
}

static void expired(greenroom_task *own, void *userdata) {
    CHECK(strcmp(greenroom_task_get_name(own), "work") == 0 && greenroom_task_is_expiring(own) == 1);
    count += *(int *)userdata;
    task = greenroom_task_end(own);
}

static int work(greenroom_app *own, const greenroom_event *event, void *userdata) {
    (void)event;
    greenroom_task *other;
    CHECK(greenroom_task_begin(own, "work", &task) == 0 && greenroom_task_begin(own, "other", &other) == 0);
    greenroom_task_set_expired(task, expired, userdata);
    // Work that does not return to the loop.
    while (!greenroom_task_is_expiring(task))
        usleep(1000);
    CHECK(count == 0 && !greenroom_task_is_expiring(other));
    greenroom_task_end(other);
    return 0;
}

static int after_expiry(greenroom_app *own, const greenroom_event *event, void *userdata) {
    (void)own, (void)userdata;
    CHECK(count == 1 && task == NULL && event->n_names == 2 && event->names[2] == NULL && event->remaining_usec == 5000000);
    return 0;
}

/// The background time ends.
static void expire(void) {
    int one = 1;
    greenroom_set_handler(app, GREENROOM_PUSH, work, &one);
    greenroom_set_handler(app, GREENROOM_TASKS_EXPIRING, after_expiry, NULL);
    CHECK(greenroom_run(app) == 0 && count == 1);
}

/// What the app learns about its launch.
static void launch(void) {
    const greenroom_launch *own = greenroom_get_launch(app);
    CHECK(!own->foreground && own->first && strcmp(own->reason, "url") == 0 && strcmp(own->url, "x:y") == 0);
    const greenroom_end *end, *again;
    const char *summary;
    CHECK(greenroom_start(app) == 0 && greenroom_last_end(app, &end) == 1 && greenroom_last_summary(app, &summary) == 1);
    CHECK(end->id == 7 && end->time_usec == 1700000000000000 && end->exit_status == -1 && end->signal == 0);
    CHECK(strcmp(end->state, "suspended") == 0 && strcmp(end->name_space, "jetsam") == 0 && strcmp(end->code, "0") == 0);
    CHECK(strcmp(end->explanation, "Killed.") == 0 && strcmp(summary, "page 1") == 0);
    loop();
    CHECK(greenroom_last_end(app, &again) == 1 && again == end && strcmp(summary, "page 1") == 0);
}

static int line[2];

static int fork_child(greenroom_app *own, const greenroom_event *event, void *userdata) {
    (void)event;
    CHECK(pipe(line) == 0);
    pid_t child = fork();
    if (child > 0) {
        *(pid_t *)userdata = child;
        return 0;
    }
    close(line[1]);
    void *data;
    greenroom_task *none;
    CHECK(greenroom_is_inert(own) == 1 && greenroom_set_status(own, "child") == 0 && greenroom_heartbeat(own) == 0);
    CHECK(greenroom_dispatch(own) == -EBUSY && greenroom_wait(own, 0) == -ECHILD && greenroom_start(own) == -ECHILD);
    CHECK(greenroom_save_state(own, "a", 1) == -ECHILD && greenroom_restore_state(own, &data, NULL) == -ECHILD);
    CHECK(greenroom_set_summary(own, "child") == 0 && greenroom_answer(own, 1, 0) == -ECHILD && greenroom_stop(own) == 0);
    CHECK(greenroom_task_begin(own, "child", &none) == 0 && greenroom_task_end(none) == NULL);
    greenroom_task_end(task);
    // It outlives the connection of its parent.
    char byte;
    CHECK(read(line[0], &byte, 1) == 0);
    greenroom_app_free(own);
    exit(0);
}

/// A child takes no part, and does not hold the connection open.
static void forked(void) {
    pid_t child = 0;
    int status;
    CHECK(greenroom_task_begin(app, "parent", &task) == 0);
    greenroom_set_handler(app, GREENROOM_PUSH, fork_child, &child);
    loop();
    greenroom_task_end(task);
    app = greenroom_app_free(app);
    // The transcript has seen the end of the connection, and then ends this.
    sigset_t set;
    int number;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK(sigwait(&set, &number) == 0);
    close(line[1]);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static int work_long(greenroom_app *own, const greenroom_event *event, void *userdata) {
    (void)userdata;
    if (event->serial == 1) {
        CHECK(greenroom_task_begin(own, "work", &task) == 0);
        while (!has_lost)
            greenroom_task_is_expiring(task);
        greenroom_task_end(task);
    }
    CHECK(event->serial == (uint64_t)++count);
    return 0;
}

/// More events arrive than the library keeps.
static void flood(void) {
    greenroom_set_log(app, ignore_warnings, NULL);
    greenroom_set_handler(app, GREENROOM_NOTIFICATION, work_long, NULL);
    CHECK(greenroom_run(app) == 0 && count == 5000);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*function)(void);
    } tests[] = {{"later", later}, {"async", async}, {"refused", refused}, {"expire", expire}, {"launch", launch}, {"fork", forked}, {"flood", flood}};
    const char *name = argc == 2 ? argv[1] : "";
    if (strcmp(name, "outside") == 0 || strcmp(name, "away") == 0) {
        (strcmp(name, "away") == 0 ? away : outside)();
        return 0;
    }
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    app = new_app();
    CHECK(greenroom_is_inert(app) == 0);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (strcmp(tests[i].name, name) != 0)
            continue;
        tests[i].function();
        greenroom_app_free(app);
        return 0;
    }
    fprintf(stderr, "library_app: unknown test '%s'\n", name);
    return 2;
}
