#pragma once

/// `greenroom-testapp descriptor KIND PROCS`, see descriptors.c.
int hold_descriptor(const char *kind, const char *procs);
