// A scripted app for the tests of the daemon. It executes its arguments as commands and then waits for signals. If TRACE names
// a file, it appends a line for each lifecycle signal that it receives.
//
//   ready                 sends READY=1
//   say TEXT              sends any notify message
//   background=answer     after EnterBackground: sends X_GREENROOM_BACKGROUND=1 (the default)
//   background=ignore     … does nothing
//   background=stop       … stops itself with SIGSTOP
//   background=task:NAME  … begins a task, then sends X_GREENROOM_BACKGROUND=1
//   background=exit:N     … exits with status N
//   expire=end:NAME       after TaskExpiring: ends the task
//   term=ignore           ignores SIGTERM
//   term=exit:N           exits with status N after SIGTERM
//   hangup=TEXT           sends a notify message after SIGHUP
//   term=linger           sends, after SIGTERM, a TCP socket that takes 15 minutes to close
//   begin NAME, end NAME  begins or ends a background task
//   tasks N               begins N background tasks
//   allocate BYTES        allocates memory and writes to it
//   share BYTES           writes to a memfd of that size, which a child maps and writes to as well
//   keep BYTES, map PATH  writes to a memfd of that size without mapping it; maps a file and writes to each page
//   undumpable            keeps other processes of its user from looking into it (PR_SET_DUMPABLE)
//   fork N                starts N processes in sessions of their own, whose parents have exited
//   store NAME[=TEXT]     stores a memfd with a text ("hi" by default), with FDSTORE=1
//   store-type TYPE       the following `store` say that they are snapshots of this media type
//   store-file NAME=PATH  stores an open file, with FDSTORE=1
//   store-fuse PATH       stores a file of a FUSE file system at PATH, whose server does not answer when another process closes
//                         the file; needs root
//   store-lingering NAME  stores a TCP socket that takes 15 minutes to close, and closes its own descriptor of it
//   stored                traces LISTEN_FDNAMES
//   contents              traces the passed descriptors as NAME=TEXT
//   sigwait               handles pending signals one at a time with a delay, lowest number first
//   orphan                makes a grandchild the main process (MAINPID=) and exits
//   child                 makes a child the main process (MAINPID=) and waits
//   bomb N                forks N processes, which fork too
//   sleep-in-kernel PATH  lets a child use a FUSE file system at PATH that nothing serves, with a busy loop beside it; needs root
//   trace-self            lets a child attach itself as a debugger
//   spin                  runs a busy loop
//   compute N             uses a processor for N ms of processor time
//   compute-until PATH    uses a processor until a file exists
//   exit N, crash, stop   exits, dies of SIGSEGV, stops itself
//   flood N               sends N status messages
//   huge                  sends a datagram of 60,000 bytes
//   junk                  sends an invalid datagram
//   descriptors N         sends N descriptors
//   usurp N               sends MAINPID=1 N times
//   intrude PATH          sends, as the user 65534, a socket that takes 15 minutes to close to the bus at PATH; needs root
//   chatter N             sends N datagrams of 1,000 messages each
//   close                 closes all descriptors
//   lend PATH             a child gives connections to GREENROOM_BUS_ADDRESS to programs that connect to a socket at PATH (lend.c)
//   print TEXT            appends a line to the trace
//
// With the arguments `kill-at entry|exit NUMBER PID FILE` it is no app: it kills another process at a system call. With
// `hold-end PID FILE RELEASE` it holds up the end of another process until a file exists. With `descriptor KIND PROCS` it is one that has a descriptor (descriptors.c), with `serve FILE` or `held COMMAND…` a server (serve.c, held.c).
#include "descriptors.h"
#include "frozen.h"
#include "fuse.h"
#include "held.h"
#include "lend.h"
#include "serve.h"
#include "tracers.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int notify_fd = -1;
static struct sockaddr_un notify_address;
static int signal_pipe[2];
static const char *on_background = "answer", *on_expire = "", *on_term = "", *on_hangup = "";

static void trace(const char *text) {
    const char *path = getenv("TRACE");
    if (!path) return;
    char line[512];
    int length = snprintf(line, sizeof line, "%s\n", text);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0 || write(fd, line, (size_t)length) < 0) _exit(99);
    close(fd);
}

static void say_bytes(const char *bytes, size_t length) {
    if (notify_fd >= 0) sendto(notify_fd, bytes, length, 0, (struct sockaddr *)&notify_address, sizeof notify_address);
}
static void say(const char *text) { say_bytes(text, strlen(text)); }

static void say2(const char *key, const char *value) {
    char text[4096];
    snprintf(text, sizeof text, "%s%s", key, value);
    say(text);
}

static void open_notify(void) {
    const char *path = getenv("NOTIFY_SOCKET");
    if (!path) return;
    notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    notify_address.sun_family = AF_UNIX;
    strncpy(notify_address.sun_path, path, sizeof notify_address.sun_path - 1);
}

static const char *stored_type;

/// Stores a descriptor with FDSTORE=1.
static void store_descriptor(const char *name, int descriptor) {
    char text[512];
    int length = snprintf(text, sizeof text, "FDSTORE=1\nFDNAME=%s", name);
    if (stored_type) snprintf(text + length, sizeof text - (size_t)length, "\nX_GREENROOM_SNAPSHOT_TYPE=%s", stored_type);
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {.iov_base = text, .iov_len = strlen(text)};
    struct msghdr message = {
        .msg_name = &notify_address, .msg_namelen = sizeof notify_address, .msg_iov = &part, .msg_iovlen = 1,
        .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    *(int *)CMSG_DATA(header) = descriptor;
    sendmsg(notify_fd, &message, 0);
}

static void store(const char *what) {
    char name[64];
    snprintf(name, sizeof name, "%s", what);
    char *equals = strchr(name, '=');
    if (equals) *equals = 0;
    const char *content = equals ? equals + 1 : "hi";
    int file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0 || write(file, content, strlen(content)) != (ssize_t)strlen(content)) _exit(93);
    store_descriptor(name, file);
    close(file);
}

static void store_file(const char *what) {
    char name[64];
    const char *equals = strchr(what, '=');
    if (!equals) _exit(93);
    snprintf(name, sizeof name, "%.*s", (int)(equals - what), what);
    int file = open(equals + 1, O_RDONLY | O_CLOEXEC);
    if (file < 0) _exit(93);
    store_descriptor(name, file);
    close(file);
}

static void trace_contents(void) {
    char names[1024], line[512];
    snprintf(names, sizeof names, "%s", getenv("LISTEN_FDNAMES") ? getenv("LISTEN_FDNAMES") : "");
    int fd = 3;
    for (char *name = strtok(names, ":"); name; name = strtok(NULL, ":"), fd++) {
        char bytes[256] = "";
        int is_state = !strcmp(name, "state") || !strcmp(name, "snapshot");
        // A state is at offset 0; another descriptor is where its owner left it.
        ssize_t length = is_state ? read(fd, bytes, sizeof bytes - 1) : pread(fd, bytes, sizeof bytes - 1, 0);
        if (length < 0) snprintf(bytes, sizeof bytes, "error %d", errno);
        snprintf(line, sizeof line, "%s=%s", name, bytes);
        trace(line);
    }
}

static void send_descriptors(int count, int descriptor) {
    char control[CMSG_SPACE(sizeof(int) * 64)] = {0};
    struct iovec part = {.iov_base = "STATUS=gifts", .iov_len = 12};
    struct msghdr message = {
        .msg_name = &notify_address, .msg_namelen = sizeof notify_address, .msg_iov = &part, .msg_iovlen = 1,
        .msg_control = control, .msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
    for (int i = 0; i < count; i++) ((int *)CMSG_DATA(header))[i] = descriptor;
    sendmsg(notify_fd, &message, 0);
}

/// Creates a TCP connection with a full send buffer. Closing it blocks until the data is read (SO_LINGER, socket(7)).
static int lingering_socket(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = socket(AF_INET, SOCK_STREAM, 0);
    struct linger linger = {.l_onoff = 1, .l_linger = 900};
    static char bytes[65536];
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&address, &size) ||
        connect(one, (struct sockaddr *)&address, sizeof address) ||
        setsockopt(one, SOL_SOCKET, SO_LINGER, &linger, sizeof linger))
        _exit(94);
    while (send(one, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {}
    return one;
}

static void store_lingering(const char *name) {
    int one = lingering_socket();
    store_descriptor(name, one);
    close(one);
}

/// Sends a lingering socket to the bus so that afterwards only the receiver has a descriptor of it.
static void intrude(const char *path) {
    int one = lingering_socket();
    if (fork() != 0) {
        int status = 0;
        close(one);
        wait(&status);
        trace(status == 0 ? "sent" : "not sent");
        return;
    }
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    int bus = socket(AF_UNIX, SOCK_STREAM, 0);
    static const char hello[] = "\0AUTH EXTERNAL\r\nDATA\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n";
    if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534) ||
        connect(bus, (struct sockaddr *)&address, sizeof address))
        _exit(93);
    // The receiver may have refused the connection already.
    send(bus, hello, sizeof hello - 1, MSG_NOSIGNAL);
    union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr aligned; } control;
    struct iovec part = {"l", 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &one, sizeof one);
    // Since Linux 6.16 the receiver can refuse descriptors, and sendmsg fails (SO_PASSRIGHTS).
    if (sendmsg(bus, &message, MSG_NOSIGNAL) == 1) _exit(0);
    int is_refused = errno == EPERM || errno == EPIPE || errno == ECONNRESET;
    // Otherwise the end of this process, which has the last descriptor, would take 15 minutes.
    struct linger none = {0};
    setsockopt(one, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    _exit(is_refused ? 0 : 92);
}

static void chatter(int count) {
    char text[4096] = "";
    for (int i = 0; i < 1000; i++) memcpy(text + 4 * i, "a=1\n", 5);
    for (int i = 0; i < count; i++) say(text);
}

static void caught(int number) {
    unsigned char byte = (unsigned char)number;
    if (write(signal_pipe[1], &byte, 1) < 0) _exit(98);
}

static void catch(int number) {
    struct sigaction action = {.sa_handler = caught, .sa_flags = SA_RESTART};
    // The next signal may come before the handler has written: the trace has their order.
    sigfillset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

static void entered_background(void) {
    trace("didEnterBackground");
    if (!strcmp(on_background, "answer")) say("X_GREENROOM_BACKGROUND=1");
    if (!strcmp(on_background, "stop")) raise(SIGSTOP);
    if (!strncmp(on_background, "exit:", 5)) _exit(atoi(on_background + 5));
    if (!strncmp(on_background, "task:", 5)) {
        say2("X_GREENROOM_BEGIN_TASK=", on_background + 5);
        say("X_GREENROOM_BACKGROUND=1");
    }
}

static void handle_signal(int number) {
    if (number == SIGHUP) return say(on_hangup), trace("hangup");
    if (number == SIGUSR1) return entered_background();
    if (number == SIGUSR2) return trace("didBecomeActive");
    if (number == SIGRTMIN + 1) return trace("memoryWarning");
    if (number == SIGRTMIN + 3) return trace("willResignActive");
    if (number == SIGRTMIN + 4) return trace("willEnterForeground");
    if (number == SIGRTMIN + 5) return trace("notification");
    if (number == SIGRTMIN + 2) {
        trace("tasksExpiring");
        if (!strncmp(on_expire, "end:", 4)) say2("X_GREENROOM_END_TASK=", on_expire + 4);
    }
    if (number == SIGTERM) {
        trace("willTerminate");
        if (!strncmp(on_term, "exit:", 5)) _exit(atoi(on_term + 5));
        if (!strcmp(on_term, "linger")) {
            int one = lingering_socket();
            send_descriptors(1, one);
            close(one);
            trace("sent");
        }
    }
}

static void fork_child(void) {
    if (fork() != 0) { wait(NULL); return; }
    // Forks twice and starts a session: only the cgroup connects the orphan to the app.
    setsid();
    if (fork() == 0) for (;;) pause();
    _exit(0);
}

// Announces another process as the main process with MAINPID= and returns in that process.
static void hand_over(int as_orphan) {
    int done[2];
    char byte;
    if (pipe(done) != 0) _exit(94);
    if (fork() != 0) {
        close(done[1]);
        while (read(done[0], &byte, 1) < 0) {}
        if (as_orphan) { wait(NULL); _exit(0); }
        for (;;) pause();
    }
    if (as_orphan && fork() != 0) _exit(0);
    char pid[16];
    snprintf(pid, sizeof pid, "%d", getpid());
    say2("MAINPID=", pid);
    close(done[0]);
    close(done[1]);
}

/// A child asks a FUSE file system that this process serves, and gets no answer: once it is to be frozen, it is in
/// uninterruptible sleep. Another child runs a busy loop.
static void sleep_in_kernel(const char *path) {
    int fuse = open("/dev/fuse", O_RDWR);
    char options[128];
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
    if (fuse < 0 || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("test", path, "fuse", 0, options))
        _exit(90);
    if (fork() == 0) {
        struct stat status;
        stat(path, &status);
        _exit(0);
    }
    if (fork() == 0) for (;;) {}
    // The file system's first request. The one of the child follows once this is answered, and so never.
    char request[65536];
    if (read(fuse, request, sizeof request) < 0) _exit(89);
    trace("asleep");
}

/// The file stays open here: the daemon's close is not the last one.
static void store_fuse(const char *path) {
    int file = open_unanswered(path);
    if (file < 0) _exit(-file);
    store_descriptor("trap", file);
}

/// Returns once the child is attached.
static void trace_self(void) {
    int done[2];
    char byte;
    if (pipe(done) != 0) _exit(94);
    pid_t parent = getpid();
    if (fork() == 0) {
        if (ptrace(PTRACE_SEIZE, parent, 0, 0) || write(done[1], "", 1) != 1) _exit(88);
        // Lets each signal pass.
        for (int status; waitpid(parent, &status, __WALL) == parent && WIFSTOPPED(status);)
            ptrace(PTRACE_CONT, parent, 0, WSTOPSIG(status));
        for (;;) pause();
    }
    while (read(done[0], &byte, 1) < 0) {}
}

static void allocate(size_t bytes) {
    // Volatile, as an optimized build would remove memory that is never read.
    volatile char *memory = malloc(bytes);
    if (!memory) _exit(97);
    for (size_t i = 0; i < bytes; i += 4096) memory[i] = (char)i;
}

static void share(size_t bytes) {
    int fd = memfd_create("shared", 0);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) _exit(97);
    volatile char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) _exit(97);
    int is_child = fork() == 0;
    for (size_t i = 0; i < bytes; i += 4096) memory[i] = (char)i;
    if (is_child) for (;;) pause();
}

static void keep(size_t bytes) {
    static char block[1 << 16];
    int fd = memfd_create("kept", 0);
    for (size_t written = 0; written < bytes; written += sizeof block)
        if (write(fd, block, sizeof block) != sizeof block) _exit(97);
}

static void map(const char *path) {
    struct stat about;
    int fd = open(path, O_RDWR);
    if (fd < 0 || fstat(fd, &about) != 0) _exit(97);
    volatile char *memory = mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) _exit(97);
    for (off_t i = 0; i < about.st_size; i += 4096) memory[i] = (char)i;
}

static void bomb(int count) {
    for (int i = 0; i < count; i++)
        if (fork() == 0) { if (count > 1) bomb(count / 2); for (;;) pause(); }
}

static void compute(int milliseconds) {
    struct timespec used;
    do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < milliseconds);
}

static int is_waiting;
static sigset_t waited;
static int act(const char *what, const char *value) {
    static char large[60000];
    int number = value ? atoi(value) : 0;
    if (!strcmp(what, "say")) return say(value), 1;
    if (!strcmp(what, "begin")) return say2("X_GREENROOM_BEGIN_TASK=", value), 1;
    if (!strcmp(what, "end")) return say2("X_GREENROOM_END_TASK=", value), 1;
    if (!strcmp(what, "lend")) return lend(value), 1; else if (!strcmp(what, "print")) return trace(value), 1;
    if (!strcmp(what, "sleep-in-kernel")) return sleep_in_kernel(value), 1;
    if (!strcmp(what, "undumpable")) return prctl(PR_SET_DUMPABLE, 0), 0;
    if (!strcmp(what, "trace-self")) return trace_self(), 0;
    if (!strcmp(what, "allocate")) return allocate((size_t)atoll(value)), 1;
    if (!strcmp(what, "share")) return share((size_t)atoll(value)), 1;
    if (!strcmp(what, "keep")) return keep((size_t)atoll(value)), 1;
    if (!strcmp(what, "map")) return map(value), 1;
    if (!strcmp(what, "exit")) _exit(number);
    if (!strcmp(what, "descriptors")) return send_descriptors(number, 0), 1;
    if (!strcmp(what, "chatter")) return chatter(number), 1;
    if (!strcmp(what, "bomb")) return bomb(number), 1;
    if (!strcmp(what, "fork")) { for (int i = 0; i < number; i++) fork_child(); return 1; }
    if (!strcmp(what, "tasks")) { for (int i = 0; i < number; i++) say("X_GREENROOM_BEGIN_TASK=many"); return 1; }
    if (!strcmp(what, "usurp")) { for (int i = 0; i < number; i++) say("MAINPID=1"); return 1; }
    if (!strcmp(what, "intrude")) return intrude(value), 1;
    if (!strcmp(what, "flood")) { for (int i = 0; i < number; i++) say("STATUS=flood"); return 1; }
    if (!strcmp(what, "ready")) return say("READY=1"), 0;
    if (!strcmp(what, "orphan") || !strcmp(what, "child")) return hand_over(*what == 'o'), 0;
    if (!strcmp(what, "store")) return store(value), 1;
    if (!strcmp(what, "store-type")) return stored_type = value, 1;
    if (!strcmp(what, "store-file")) return store_file(value), 1;
    if (!strcmp(what, "store-fuse")) return store_fuse(value), 1;
    if (!strcmp(what, "store-lingering")) return store_lingering(value), 1;
    if (!strcmp(what, "contents")) return trace_contents(), 0;
    if (!strcmp(what, "stored")) return trace(getenv("LISTEN_FDNAMES") ? getenv("LISTEN_FDNAMES") : "nothing"), 0;
    if (!strcmp(what, "sigwait")) return is_waiting = 1, sigprocmask(SIG_BLOCK, &waited, NULL), 0;
    if (!strcmp(what, "stop")) return raise(SIGSTOP), 0;
    if (!strcmp(what, "crash")) return signal(SIGSEGV, SIG_DFL), raise(SIGSEGV), 0;
    if (!strcmp(what, "spin")) for (;;) {}
    if (!strcmp(what, "compute")) return compute(number), 1;
    if (!strcmp(what, "compute-until")) { while (access(value, F_OK)) {} return 1; }
    if (!strcmp(what, "huge")) return say_bytes(large, sizeof large), 0;
    if (!strcmp(what, "junk")) return say_bytes("\xff\xfe\0READY=1\n=\n\n===", 18), 0;
    if (!strcmp(what, "close")) { for (int i = 0; i < 1024; i++) if (i != signal_pipe[0] && i != signal_pipe[1]) close(i); return 0; }
    if (!strncmp(what, "background=", 11)) return on_background = what + 11, 0;
    if (!strncmp(what, "expire=", 7)) return on_expire = what + 7, 0;
    if (!strncmp(what, "hangup=", 7)) return on_hangup = what + 7, catch(SIGHUP), 0;
    if (!strncmp(what, "term=", 5)) return on_term = what + 5, catch(SIGTERM), 0;
    fprintf(stderr, "test app: unknown command '%s'\n", what);
    _exit(64);
}

int main(int count, char **arguments) {
    if (count == 6 && !strcmp(arguments[1], "kill-at"))
        return kill_at(arguments[2], atol(arguments[3]), atoi(arguments[4]), arguments[5]);
    if (count == 5 && !strcmp(arguments[1], "hold-end"))
        return hold_end(atoi(arguments[2]), arguments[3], arguments[4]);
    if (count == 4 && !strcmp(arguments[1], "descriptor")) return hold_descriptor(arguments[2], arguments[3]);
    if (count == 3 && !strcmp(arguments[1], "serve")) return serve(arguments[2]);
    if (count == 3 && !strcmp(arguments[1], "frozen")) return wait_frozen(arguments[2]);
    if (count >= 2 && !strcmp(arguments[1], "held")) return serve_held(arguments + 2);
    if (pipe2(signal_pipe, O_CLOEXEC) != 0) return 96;
    int lifecycle_signals[] = {SIGUSR1, SIGUSR2, SIGRTMIN + 1, SIGRTMIN + 2, SIGRTMIN + 3, SIGRTMIN + 4, SIGRTMIN + 5};
    for (size_t i = 0; i < sizeof lifecycle_signals / sizeof *lifecycle_signals; i++) {
        catch(lifecycle_signals[i]);
        sigaddset(&waited, lifecycle_signals[i]);
    }
    open_notify();
    trace("willFinishLaunching");
    for (int i = 1; i < count; i++) i += act(arguments[i], i + 1 < count ? arguments[i + 1] : NULL);
    unsigned char number;
    while (is_waiting) {
        int taken;
        // Waits for signals that are sent at almost the same time.
        poll(NULL, 0, 20);
        if (sigwait(&waited, &taken) == 0) handle_signal(taken);
    }
    for (;;) {
        ssize_t got = read(signal_pipe[0], &number, 1);
        if (got == 1) handle_signal(number);
        else if (got < 0 && errno != EINTR) return 95;
    }
}
