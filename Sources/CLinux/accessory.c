#include "clinux_accessory.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

bool clinux_character_device(const char *path, uint32_t *major, uint32_t *minor) {
    struct statx about;
    if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE, &about) != 0 || !S_ISCHR(about.stx_mode))
        return false;
    *major = about.stx_rdev_major;
    *minor = about.stx_rdev_minor;
    return true;
}

bool clinux_is_bluetooth_socket(const char *path) {
    static const char *const protocols[] = {"BNEP", "CMTP", "HCI", "HIDP", "ISO", "L2CAP", "RFCOMM", "SCO"};
    static const char socket[] = "socket:";
    char own[32], target[16], name[32];
    // From here on it is the same object, and its close(2) flushes nothing.
    int object = open(path, O_PATH | O_CLOEXEC);
    if (object < 0)
        return false;
    snprintf(own, sizeof own, "/proc/self/fd/%d", object);
    // No file has such a name. The kernel itself answers for the attribute of a socket: the name of its protocol, as lsof(8) reads it.
    bool is_socket = readlink(own, target, sizeof target) >= (ssize_t)strlen(socket) && !strncmp(target, socket, strlen(socket));
    ssize_t length = is_socket ? getxattr(own, "system.sockprotoname", name, sizeof name - 1) : -1;
    close(object);
    if (length <= 0)
        return false;
    name[length] = 0;
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++)
        if (!strcmp(name, protocols[i]))
            return true;
    return false;
}
