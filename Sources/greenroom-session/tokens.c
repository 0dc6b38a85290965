#include "session.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-id128.h>
#include <unistd.h>

// The token of each app that may be registered with a distributor (push.c): a file of the user, so that the app keeps its endpoint.
_Static_assert(TOKEN_SIZE == SD_ID128_STRING_MAX, "a token is a random ID");
static const char *const prefixes[BUS_COUNT] = {[BUS_SESSION] = "user.", [BUS_SYSTEM] = "system."};

// The file of an app; with an empty ID the folder, which is created.
static bool find_path(char path[PATH_MAX], enum bus which, const char *app) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    bool is_set = state && state[0] == '/';
    const char *base = is_set ? state : home ? home : "", *folder = is_set ? "/greenroom-session" : "/.local/state/greenroom-session";
    int size = snprintf(path, PATH_MAX, "%s%s%s%s%s", base, folder, *app ? "/" : "", *app ? prefixes[which] : "", app);
    if (base[0] != '/' || strchr(app, '/') || size >= PATH_MAX) return errno = EINVAL, false;
    if (*app) return true;
    for (char *end = path; (end = strchr(end + 1, '/')); *end = '/') *end = 0, mkdir(path, 0700);
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

bool token_make(enum bus which, const char *app, char token[TOKEN_SIZE]) {
    char path[PATH_MAX], new[PATH_MAX + 8];
    sd_id128_t id;
    bool is_made = find_path(path, which, "") && snprintf(new, sizeof new, "%s/.new", path) > 0 && find_path(path, which, app) &&
        sd_id128_randomize(&id) >= 0;
    FILE *file = is_made ? fopen(new, "we") : NULL;
    if (file) {
        is_made = fprintf(file, "%s\n", sd_id128_to_string(id, token)) > 0;
        is_made = fclose(file) == 0 && is_made && rename(new, path) == 0;
    }
    if (file && is_made) return true;
    fprintf(stderr, "greenroom-session: apps cannot be registered for pushes: %s: %s\n", path, strerror(errno));
    return false;
}

void token_remove(enum bus which, const char *app) {
    char path[PATH_MAX];
    if (find_path(path, which, app)) unlink(path);
}

void tokens_load(void (*loaded)(enum bus which, const char *app, const char *token)) {
    char path[PATH_MAX], token[TOKEN_SIZE];
    DIR *folder = find_path(path, BUS_SESSION, "") ? opendir(path) : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        for (enum bus which = 0; which < BUS_COUNT; which++) {
            const char *app = entry->d_name + strlen(prefixes[which]);
            if (strncmp(entry->d_name, prefixes[which], strlen(prefixes[which])) || !find_path(path, which, app)) continue;
            FILE *file = *app ? fopen(path, "re") : NULL;
            if (file && fscanf(file, "%32[0-9a-f]", token) == 1 && strlen(token) == TOKEN_SIZE - 1) loaded(which, app, token);
            if (file) fclose(file);
        }
    if (folder) closedir(folder);
}
