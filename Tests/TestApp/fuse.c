#include "fuse.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static void fuse_attributes(struct fuse_attr *attributes, uint64_t node) {
    attributes->ino = node;
    attributes->mode = node == 1 ? S_IFDIR | 0755 : S_IFREG | 0644;
    attributes->nlink = 1;
    attributes->blksize = 4096;
}

/// Serves a FUSE file system with one file. It does not answer when a process other than the owner closes the file.
static void serve_fuse(int fuse, pid_t owner) {
    static char request[1 << 18];
    while (read(fuse, request, sizeof request) >= (ssize_t)sizeof(struct fuse_in_header)) {
        const struct fuse_in_header *in = (const struct fuse_in_header *)request;
        union {
            struct fuse_init_out init;
            struct fuse_entry_out entry;
            struct fuse_attr_out attributes;
            struct fuse_open_out open;
        } out;
        memset(&out, 0, sizeof out);
        size_t size = 0;
        int error = 0;
        switch (in->opcode) {
        case FUSE_INIT:
            out.init.major = FUSE_KERNEL_VERSION;
            out.init.minor = 31;
            out.init.max_background = 12;
            out.init.congestion_threshold = 10;
            out.init.max_write = 1 << 17;
            out.init.time_gran = 1;
            size = sizeof out.init;
            break;
        case FUSE_LOOKUP:
            out.entry.nodeid = 2;
            out.entry.entry_valid = out.entry.attr_valid = 1000;
            fuse_attributes(&out.entry.attr, 2);
            size = sizeof out.entry;
            break;
        case FUSE_GETATTR:
            out.attributes.attr_valid = 1000;
            fuse_attributes(&out.attributes.attr, in->nodeid);
            size = sizeof out.attributes;
            break;
        case FUSE_OPEN: size = sizeof out.open; break;
        case FUSE_FLUSH:
            if (in->pid != (uint32_t)owner) continue;
            break;
        case 2:
        case 42:
        case FUSE_INTERRUPT: continue; // these have no answer
        case FUSE_RELEASE: break;
        default: error = -ENOSYS;
        }
        struct fuse_out_header header = {
            .len = (uint32_t)(sizeof header + size), .error = error, .unique = in->unique};
        struct iovec parts[] = {{&header, sizeof header}, {&out, size}};
        if (writev(fuse, parts, size > 0 ? 2 : 1) < 0 && errno != ENOENT) _exit(87);
    }
    _exit(0);
}

int open_unanswered(const char *path) {
    int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    char options[128], name[4096];
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
    if (fuse < 0 || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("test", path, "fuse", 0, options))
        return -90;
    pid_t owner = getpid();
    if (fork() == 0) serve_fuse(fuse, owner);
    close(fuse);
    snprintf(name, sizeof name, "%s/file", path);
    int file = open(name, O_RDONLY | O_CLOEXEC);
    return file < 0 ? -86 : file;
}
