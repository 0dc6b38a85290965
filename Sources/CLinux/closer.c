#include "clinux_closer.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

enum { STACK_SIZE = 64 * 1024 };

struct clinux_closer {
    pthread_mutex_t mutex;
    int *queue; // a stack in truth: no order is promised
    unsigned queued, capacity;
    unsigned pending; // queued or being closed
    bool running;
    int holders; // the owner and the thread; the last one frees
};

/// Gives the mutex back as well.
static void let_go(struct clinux_closer *closer) {
    bool last = --closer->holders == 0;
    pthread_mutex_unlock(&closer->mutex);
    if (!last)
        return;
    pthread_mutex_destroy(&closer->mutex);
    free(closer->queue);
    free(closer);
}

static void *work(void *argument) {
    struct clinux_closer *closer = argument;
    pthread_mutex_lock(&closer->mutex);
    while (closer->queued > 0) {
        int descriptor = closer->queue[--closer->queued];
        pthread_mutex_unlock(&closer->mutex);
        close(descriptor);
        pthread_mutex_lock(&closer->mutex);
        closer->pending--;
    }
    closer->running = false;
    let_go(closer);
    return NULL;
}

/// With every signal blocked, so that the daemon's arrive where they are waited for.
static bool start(struct clinux_closer *closer) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes))
        return false;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    int error = pthread_create(&thread, &attributes, work, closer);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (error)
        return false;
    closer->running = true;
    closer->holders++;
    return true;
}

struct clinux_closer *clinux_closer_create(void) {
    struct clinux_closer *closer = calloc(1, sizeof *closer);
    if (!closer)
        return NULL;
    pthread_mutex_init(&closer->mutex, NULL);
    closer->holders = 1;
    return closer;
}

static bool has_room(struct clinux_closer *closer) {
    if (closer->queued < closer->capacity)
        return true;
    unsigned capacity = closer->capacity ? closer->capacity * 2 : 16;
    int *larger = realloc(closer->queue, capacity * sizeof *larger);
    if (!larger)
        return false;
    closer->queue = larger;
    closer->capacity = capacity;
    return true;
}

void clinux_closer_close(struct clinux_closer *closer, int descriptor) {
    pthread_mutex_lock(&closer->mutex);
    bool taken = has_room(closer);
    if (taken) {
        closer->queue[closer->queued++] = descriptor;
        if (!closer->running && !start(closer)) {
            closer->queued--;
            taken = false;
        }
    }
    if (taken)
        closer->pending++;
    pthread_mutex_unlock(&closer->mutex);
    if (!taken)
        close(descriptor);
}

unsigned clinux_closer_pending(struct clinux_closer *closer) {
    pthread_mutex_lock(&closer->mutex);
    unsigned pending = closer->pending;
    pthread_mutex_unlock(&closer->mutex);
    return pending;
}

void clinux_closer_release(struct clinux_closer *closer) {
    pthread_mutex_lock(&closer->mutex);
    let_go(closer);
}
