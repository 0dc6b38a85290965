#pragma once

// The program of an app as a file: its folder is made read-only for the app, and its digest is compared before it is executed
// (`ReadOnlyProgram=`, `ProgramDigest=`). The child of spawn.c calls these functions: system calls only, no libc. They may wait for
// the file system, and read all of the file.

#include "clinux_spawn.h"

#include <stdbool.h>
#include <stdint.h>

/// Makes the folder of the program read-only, with all that is mounted below it, in a mount namespace of the caller. Symbolic links
/// are followed first. What is mounted outside later appears in the namespace, too; nothing of it appears outside.
/// - `keeps_working_directory`: the working directory, which would bypass the mount, is entered again.
/// Returns 0 or -errno: -EPERM without CAP_SYS_ADMIN, -ENOSYS before Linux 5.12, -EINVAL for the folder /.
long program_protect(const char *program, bool keeps_working_directory);

/// Opens the program and compares its digest.
/// - `kind`: one of `enum clinux_digest`.
/// - `digest`: the wanted one, CLINUX_DIGEST_SIZE bytes; that of the file replaces it.
/// - `stage`: receives where it failed.
/// Returns the descriptor, close-on-exec, or -errno: -EACCES unless it is a regular file, -EBADMSG for another digest; of fs-verity
/// -ENODATA, -ENOTTY or -EOPNOTSUPP if the file has none, -EOVERFLOW for another algorithm.
long program_check(const char *program, int kind, uint8_t *digest, int *stage);

/// Whether the file begins as ELF programs do. Only those can be executed by their descriptor alone: the interpreter of a script
/// gets a path, and could not open one of a close-on-exec descriptor (execveat(2)).
bool program_is_elf(int file);
