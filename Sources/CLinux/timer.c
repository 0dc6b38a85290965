#include "clinux_timer.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

int clinux_timer_create(void) {
    int descriptor = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    return descriptor < 0 ? -errno : descriptor;
}

int clinux_timer_set(int descriptor, int64_t microseconds) {
    // 0 would disarm it.
    if (microseconds < 1) microseconds = 1;
    struct itimerspec time = {.it_value = {microseconds / 1000000, microseconds % 1000000 * 1000}};
    int flags = TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET;
    return timerfd_settime(descriptor, flags, &time, NULL) < 0 ? -errno : 0;
}

int clinux_timer_read(int descriptor) {
    uint64_t count;
    if (read(descriptor, &count, sizeof count) == sizeof count) return 1;
    return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

static int64_t microseconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

void clinux_clocks(int64_t clocks[3]) {
    clocks[0] = microseconds(CLOCK_REALTIME);
    clocks[1] = microseconds(CLOCK_MONOTONIC);
    clocks[2] = microseconds(CLOCK_BOOTTIME);
}
