#include "thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum {
    STACK_SIZE = 64 * 1024,
    MOST_IDLE = 4,
    IDLE_SECONDS = 5,
};

int thread_start(void *(*run)(void *), void *argument) {
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error)
        return -error;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    error = pthread_create(&thread, &attributes, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return -error;
}

// MARK: Threads that are used again

struct reused {
    void *(*run)(void *); // NULL: it is idle
    void *argument;
    pthread_cond_t given;
    struct reused *next; // in `idle`
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct reused *idle;
static unsigned idle_count;

static void remove_idle(struct reused *thread) {
    struct reused **link = &idle;
    while (*link != thread)
        link = &(*link)->next;
    *link = thread->next;
    idle_count--;
}

/// Waits for the next function. Returns false if there are enough idle threads, or none came in time.
static bool wait_for_next(struct reused *thread) {
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += IDLE_SECONDS;
    pthread_mutex_lock(&mutex);
    if (idle_count < MOST_IDLE) {
        thread->next = idle;
        idle = thread;
        idle_count++;
        while (!thread->run && pthread_cond_timedwait(&thread->given, &mutex, &end) != ETIMEDOUT)
            ;
        if (!thread->run)
            remove_idle(thread);
    }
    bool has_next = thread->run != NULL;
    pthread_mutex_unlock(&mutex);
    return has_next;
}

static void *run_all(void *argument) {
    struct reused *thread = argument;
    do {
        void *(*run)(void *) = thread->run;
        run(thread->argument);
        thread->run = NULL;
        pthread_setname_np(pthread_self(), "idle-helper");
    } while (wait_for_next(thread));
    pthread_cond_destroy(&thread->given);
    free(thread);
    return NULL;
}

int thread_reuse(void *(*run)(void *), void *argument) {
    pthread_mutex_lock(&mutex);
    struct reused *thread = idle;
    if (thread) {
        remove_idle(thread);
        thread->run = run;
        thread->argument = argument;
        pthread_cond_signal(&thread->given);
    }
    pthread_mutex_unlock(&mutex);
    if (thread)
        return 0;
    thread = calloc(1, sizeof *thread);
    if (!thread)
        return -ENOMEM;
    thread->run = run;
    thread->argument = argument;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&thread->given, &attributes);
    pthread_condattr_destroy(&attributes);
    int error = thread_start(run_all, thread);
    if (error < 0) {
        pthread_cond_destroy(&thread->given);
        free(thread);
    }
    return error;
}
