#pragma once

// The key of a directory that is encrypted with fscrypt (Documentation/filesystems/fscrypt.rst).

/// Does one thing with the key of `directory`, in a process of its own: the calls wait for the file system, and the process that has had the
/// key ends. Prints a sentence for people if it fails.
/// - Parameters:
///   - verb: `check`: whether it has an encryption policy of version 2. `lock`: removes the key, and prints a line `busy PID NAME` for
///     processes that keep files of it open, at most 16. `unlock`: adds the key that `command` prints, 16 to 64 bytes.
/// - Returns: the exit status of the process.
int clinux_protect(const char *verb, const char *directory, char *const *command);

/// Whether `directory` has an encryption policy of version 2. It waits for the file system.
/// - Returns: 0, or an error for `clinux_protect_problem`.
int clinux_protect_check(const char *directory);

/// Why a directory cannot be protected, for people; NULL: it can.
const char *clinux_protect_problem(int error);
