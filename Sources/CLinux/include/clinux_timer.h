#pragma once

// A timer on CLOCK_REALTIME that also notices when that clock is set (timerfd_create(2)).

#include <stdint.h>

/// A descriptor, or -errno.
int clinux_timer_create(void);
/// Becomes readable at this time, in microseconds since 1970, and when the clock is set. 0 or -errno.
int clinux_timer_set(int descriptor, int64_t microseconds);
/// 1: the time has come. 0: it has not. -ECANCELED: the clock was set; the timer is armed no more. Or another -errno.
int clinux_timer_read(int descriptor);
/// Microseconds of CLOCK_REALTIME, CLOCK_MONOTONIC and CLOCK_BOOTTIME.
void clinux_clocks(int64_t clocks[3]);
