#pragma once

#include "clinux_worker.h"

/// CLINUX_JOB_DIAGNOSE of clinux_worker.h. 0 or -errno. It can block in a way that no signal ends.
int diagnose(int file, struct clinux_completion *done);
