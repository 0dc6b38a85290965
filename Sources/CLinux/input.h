#pragma once

#include "clinux_worker.h"

/// CLINUX_JOB_EXAMINE_INPUT of clinux_worker.h. 0 or -errno. It can block in a way that no signal ends.
int input_examine(int descriptor, struct clinux_completion *done);
