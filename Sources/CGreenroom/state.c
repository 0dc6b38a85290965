/* The restoration state and the snapshot: sealed memfds for greenroomd, a file without it. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// The file in STATE_DIRECTORY that has the state without Greenroom.
#define FILE_NAME "restoration-state"

// MARK: Writing

static int write_all(int descriptor, const void *data, size_t size) {
    const char *rest = data;
    while (size > 0) {
        ssize_t n = write(descriptor, rest, size);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            rest += n;
            size -= (size_t)n;
        }
    }
    return 0;
}

/// A memfd with this content that no process can change.
static int sealed_memfd(const char *name, const void *data, size_t size) {
    int descriptor = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor < 0)
        return -errno;
    int r = write_all(descriptor, data, size);
    if (r >= 0 && fcntl(descriptor, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        r = -errno;
    if (r < 0) {
        close(descriptor);
        return r;
    }
    return descriptor;
}

/// The path of a file in STATE_DIRECTORY, for the state of a scene or, with NULL, of the app: 1, or 0 if there is no folder.
static int path_of(const char *scene, const char *suffix, char **ret) {
    const char *folders = getenv("STATE_DIRECTORY");
    *ret = NULL;
    // Several folders are separated by colons.
    int length = folders ? (int)strcspn(folders, ":") : 0;
    if (length == 0)
        return 0;
    return asprintf(ret, "%.*s/" FILE_NAME "%s%s%s", length, folders, scene ? "." : "", scene ? scene : "", suffix) < 0 ? -ENOMEM : 1;
}

/// Whether this names a scene. It becomes a part of a path.
static bool is_scene(const char *name) {
    size_t length = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");
    return length >= 1 && length <= 64 && name[length] == '\0';
}

static int check_scene(greenroom_app *app, const char *scene) {
    if (!app || !scene)
        return -EINVAL;
    return is_scene(scene) ? 0 : fail(app, -EINVAL, "The name of the scene is not 1 to 64 of the characters A-Z a-z 0-9 _ . -");
}

static int replace(const char *path, const char *new, const void *data, size_t size) {
    int descriptor = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor < 0)
        return -errno;
    int r = write_all(descriptor, data, size);
    if (r >= 0 && fsync(descriptor) < 0)
        r = -errno;
    if (close(descriptor) < 0 && r >= 0)
        r = -errno;
    return r >= 0 && rename(new, path) < 0 ? -errno : r;
}

static int save_file(greenroom_app *app, const char *scene, const void *data, size_t size) {
    char *path = NULL, *new = NULL;
    int r = path_of(scene, "", &path);
    if (r > 0)
        r = path_of(scene, ".new", &new);
    if (r > 0)
        r = replace(path, new, data, size);
    if (r < 0)
        fail(app, r, "The restoration state was not saved in %s: %s.", path ? path : FILE_NAME, strerror(-r));
    free(path);
    free(new);
    return r < 0 ? r : 0;
}

/// A call that saves a state or a snapshot. text: its first argument, or NULL.
static int prepare(greenroom_app *app, bool is_state, const char *member, const void *data, size_t size, const char *text,
                   struct call **ret) {
    const char *what = is_state ? "The restoration state" : "The snapshot";
    size_t limit = is_state ? MAX_STATE : MAX_SNAPSHOT;
    if (!app)
        return -EINVAL;
    if (!data && size > 0)
        return fail(app, -EINVAL, "%s is NULL.", what);
    if (size > limit)
        return fail(app, -EMSGSIZE, "%s has %zu bytes; at most %zu are kept.", what, size, limit);
    if (mode_of(app) == MODE_CHILD)
        return fail_child(app, is_state ? "greenroom_save_state" : "greenroom_save_snapshot");
    struct call *call = call_new(app, member, ARGUMENTS_DESCRIPTOR, VALUES_NONE);
    if (!call)
        return fail_memory(app);
    call->size += size;
    int r = text ? call_set_text(call, text) : 0;
    if (r >= 0 && mode_of(app) == MODE_OUTSIDE)
        r = is_state ? save_file(app, text, data, size) : 0;
    else if (r >= 0 && (call->descriptor = sealed_memfd(is_state ? "state" : "snapshot", data, size)) < 0)
        r = fail(app, call->descriptor, "%s was not saved: %s.", what, strerror(-call->descriptor));
    if (r < 0) {
        call_free(call);
        return r;
    }
    *ret = call;
    return 0;
}

/// text: the scene of a state; NULL: it is that of the app. The type of a snapshot; NULL: it is a PNG.
static int save(greenroom_app *app, bool is_state, const void *data, size_t size, const char *text, bool is_async,
                greenroom_reply_handler_t reply, void *userdata) {
    const char *member = is_state ? text ? "SaveSceneState" : "SaveState" : text ? "SaveSnapshotAs" : "SaveSnapshot";
    struct call *call;
    int r = prepare(app, is_state, member, data, size, text, &call);
    return r < 0 ? r : call_finish(call, is_async, reply, userdata);
}

PUBLIC int greenroom_save_state(greenroom_app *app, const void *data, size_t size) {
    return save(app, true, data, size, NULL, false, NULL, NULL);
}

PUBLIC int greenroom_save_state_async(greenroom_app *app, const void *data, size_t size, greenroom_reply_handler_t reply,
                                      void *userdata) {
    return save(app, true, data, size, NULL, true, reply, userdata);
}

PUBLIC int greenroom_save_scene_state(greenroom_app *app, const char *scene, const void *data, size_t size) {
    int r = check_scene(app, scene);
    return r < 0 ? r : save(app, true, data, size, scene, false, NULL, NULL);
}

PUBLIC int greenroom_save_scene_snapshot(greenroom_app *app, const char *scene, const void *data, size_t size, const char *type) {
    int r = check_scene(app, scene);
    if (r < 0)
        return r;
    struct call *call = NULL;
    r = prepare(app, false, "SaveSceneSnapshot", data, size, scene, &call);
    if (r < 0)
        return r;
    call->arguments = ARGUMENTS_SCENE_SNAPSHOT;
    call->type = strdup(type ? type : "image/png");
    if (!call->type) {
        call_free(call);
        return fail_memory(app);
    }
    call->size += strlen(call->type);
    return call_finish(call, false, NULL, NULL);
}

PUBLIC int greenroom_save_snapshot(greenroom_app *app, const void *data, size_t size) {
    return save(app, false, data, size, NULL, false, NULL, NULL);
}

PUBLIC int greenroom_save_snapshot_async(greenroom_app *app, const void *data, size_t size, greenroom_reply_handler_t reply,
                                         void *userdata) {
    return save(app, false, data, size, NULL, true, reply, userdata);
}

PUBLIC int greenroom_save_snapshot_as(greenroom_app *app, const void *data, size_t size, const char *type) {
    return save(app, false, data, size, type, false, NULL, NULL);
}

PUBLIC int greenroom_save_snapshot_as_async(greenroom_app *app, const void *data, size_t size, const char *type,
                                            greenroom_reply_handler_t reply, void *userdata) {
    return save(app, false, data, size, type, true, reply, userdata);
}

// MARK: Reading

static int load_file(greenroom_app *app, const char *scene, void **ret, size_t *ret_size) {
    char *path = NULL;
    int r = path_of(scene, "", &path);
    if (r > 0) {
        int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (descriptor >= 0) {
            r = message_read_file(descriptor, MAX_STATE, ret, ret_size);
            close(descriptor);
        } else
            r = errno == ENOENT ? 0 : -errno;
    }
    if (r < 0)
        fail(app, r, "The restoration state was not read from %s: %s.", path ? path : FILE_NAME, strerror(-r));
    free(path);
    return r < 0 ? r : 0;
}

/// A call whose data is the state of a scene or, with NULL, of the app, if Greenroom does not have it.
static int restore(greenroom_app *app, const char *scene, struct call **ret) {
    if (mode_of(app) == MODE_CHILD)
        return fail_child(app, scene ? "greenroom_restore_scene_state" : "greenroom_restore_state");
    struct call *call = call_new(app, scene ? "GetSceneState" : "GetState", scene ? ARGUMENTS_TEXT : ARGUMENTS_NONE, VALUES_STATE);
    if (!call)
        return fail_memory(app);
    int r = scene ? call_set_text(call, scene) : 0;
    if (r >= 0 && mode_of(app) == MODE_OUTSIDE)
        r = load_file(app, scene, &call->data, &call->data_size);
    if (r < 0)
        call_free(call);
    *ret = call;
    return r;
}

static int restore_and_wait(greenroom_app *app, const char *scene, void **ret, size_t *ret_size) {
    if (!app || !ret)
        return -EINVAL;
    *ret = NULL;
    if (ret_size)
        *ret_size = 0;
    struct call *call;
    int r = restore(app, scene, &call);
    if (r < 0)
        return r;
    if (mode_of(app) == MODE_LIVE)
        r = call_wait(call);
    if (r >= 0 && call->data) {
        *ret = call->data;
        if (ret_size)
            *ret_size = call->data_size;
        call->data = NULL;
        r = 1;
    }
    call_free(call);
    return r;
}

PUBLIC int greenroom_restore_state(greenroom_app *app, void **ret, size_t *ret_size) {
    return restore_and_wait(app, NULL, ret, ret_size);
}

PUBLIC int greenroom_restore_scene_state(greenroom_app *app, const char *scene, void **ret, size_t *ret_size) {
    int r = check_scene(app, scene);
    return r < 0 ? r : restore_and_wait(app, scene, ret, ret_size);
}

PUBLIC int greenroom_restore_state_async(greenroom_app *app, greenroom_reply_handler_t reply, void *userdata) {
    if (!app)
        return -EINVAL;
    struct call *call;
    int r = restore(app, NULL, &call);
    return r < 0 ? r : call_finish(call, true, reply, userdata);
}

static int drop(greenroom_app *app, bool is_async, greenroom_reply_handler_t reply, void *userdata) {
    if (!app)
        return -EINVAL;
    if (mode_of(app) == MODE_CHILD)
        return fail_child(app, "greenroom_drop_state");
    struct call *call = call_new(app, "DropState", ARGUMENTS_NONE, VALUES_NONE);
    if (!call)
        return fail_memory(app);
    char *path = NULL;
    int r = mode_of(app) == MODE_OUTSIDE ? path_of(NULL, "", &path) : 0;
    if (r > 0)
        r = unlink(path) < 0 && errno != ENOENT ? -errno : 0;
    free(path);
    if (r < 0) {
        call_free(call);
        return fail(app, r, "The restoration state was not removed: %s.", strerror(-r));
    }
    return call_finish(call, is_async, reply, userdata);
}

PUBLIC int greenroom_drop_state(greenroom_app *app) { return drop(app, false, NULL, NULL); }

PUBLIC int greenroom_drop_state_async(greenroom_app *app, greenroom_reply_handler_t reply, void *userdata) {
    return drop(app, true, reply, userdata);
}
