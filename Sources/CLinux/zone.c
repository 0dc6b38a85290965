#include "clinux_zone.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static char **own_environment;
static char value[4096];
static char *zone_environment[] = {value, NULL};

/// With setenv(3) the array could move while another thread reads it.
static void set_zone(const char *format, const char *zone) {
    snprintf(value, sizeof value, format, zone);
    environ = zone_environment;
    tzset();
}

void clinux_begin_zone(const char *zone) {
    const char *own = zone ? NULL : getenv("TZ");
    char copy[sizeof value - sizeof "TZ="];
    if (own) snprintf(copy, sizeof copy, "%s", own);
    own_environment = environ;
    // glibc reads a file again only if TZ has another value.
    set_zone("TZ=%s", "UTC0");
    if (zone) {
        set_zone("TZ=:%s", zone);
    } else if (own) {
        set_zone("TZ=%s", copy);
    } else {
        set_zone("TZ=:%s", "/etc/localtime");
    }
}

void clinux_end_zone(void) {
    environ = own_environment;
    tzset();
}

int clinux_zone_abbreviation(const char *name) {
    for (int dst = 0; dst <= 1; dst++) {
        if (tzname[dst][0] && strcasecmp(name, tzname[dst]) == 0) return dst;
    }
    return -1;
}

bool clinux_has_zone(const char *zone) {
    char path[256];
    if (zone[0] == '/' || strstr(zone, "..")) return false;
    if (snprintf(path, sizeof path, "/usr/share/zoneinfo/%s", zone) >= (int)sizeof path) return false;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0) return false;
    struct stat status;
    char magic[4];
    bool is_zone = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && read(file, magic, 4) == 4 &&
                   memcmp(magic, "TZif", 4) == 0;
    close(file);
    return is_zone;
}
