/*
 * Children made by fork. They take no part, and must not hold the connection open: greenroomd would not notice the end of their
 * parent.
 */
#include "internal.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static greenroom_app *apps;

static void before(void) { pthread_mutex_lock(&lock); }

static void in_parent(void) { pthread_mutex_unlock(&lock); }

/// Replaces the child's copies of the connections. The numbers stay in use until the object is freed.
static void in_child(void) {
    for (greenroom_app *app = apps; app; app = app->next) {
        if (app->polled_bus < 0)
            continue;
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null >= 0 && null != app->polled_bus) {
            dup3(null, app->polled_bus, O_CLOEXEC);
            close(null);
        }
    }
    pthread_mutex_unlock(&lock);
}

static void install(void) { pthread_atfork(before, in_parent, in_child); }

void fork_register(greenroom_app *app) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
    pthread_mutex_lock(&lock);
    app->next = apps;
    apps = app;
    pthread_mutex_unlock(&lock);
}

void fork_unregister(greenroom_app *app) {
    pthread_mutex_lock(&lock);
    for (greenroom_app **link = &apps; *link; link = &(*link)->next) {
        if (*link == app) {
            *link = app->next;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}
