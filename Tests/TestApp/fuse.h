#pragma once

/// Mounts a FUSE file system at `path`, in a mount namespace of this process, and opens its file. A child serves it, and does not
/// answer when another process closes the file. Needs root. Returns the descriptor, or a negative exit status.
int open_unanswered(const char *path);
