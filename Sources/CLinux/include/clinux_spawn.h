#pragma once

#include "clinux_program.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// The stage of a new process, or the stage at which it failed. The child writes the number into the error pipe.
enum clinux_stage {
    CLINUX_STAGE_NONE = 0,
    CLINUX_STAGE_SIGNALS,
    CLINUX_STAGE_SESSION,
    CLINUX_STAGE_CGROUP,
    CLINUX_STAGE_OOM_SCORE_ADJUST,
    CLINUX_STAGE_STANDARD_INPUT,
    CLINUX_STAGE_STANDARD_OUTPUT,
    CLINUX_STAGE_STANDARD_ERROR,
    CLINUX_STAGE_DESCRIPTORS,
    CLINUX_STAGE_LIMITS,
    CLINUX_STAGE_GROUPS,
    CLINUX_STAGE_GROUP,
    CLINUX_STAGE_USER,
    CLINUX_STAGE_WORKING_DIRECTORY,
    CLINUX_STAGE_NO_NEW_PRIVILEGES,
    CLINUX_STAGE_READ_ONLY_PROGRAM,
    CLINUX_STAGE_PROGRAM_DIGEST,
    CLINUX_STAGE_EXECUTABLE,
};

struct clinux_limit {
    int resource;
    uint64_t soft;
    uint64_t hard;
};

/// Strings in sequence, each with a NUL.
struct clinux_strings {
    const uint8_t *bytes;
    size_t length;
    size_t count;
};

struct clinux_spawn_request {
    const char *executable;
    struct clinux_strings arguments;
    struct clinux_strings environment;
    /// Names of variables that the child sets to its own pid, such as LISTEN_PID.
    struct clinux_strings pid_variables;
    const char *working_directory; // or NULL
    bool change_credentials;
    uid_t uid;
    gid_t gid;
    const gid_t *groups;
    size_t group_count;
    mode_t umask;
    const struct clinux_limit *limits;
    size_t limit_count;
    bool set_oom_score_adjust;
    int oom_score_adjust;
    bool no_new_privileges;
    bool ignore_sigpipe;
    const char *read_only_program; // the process cannot write in the folder of this file; or NULL
    /// Only a file with this digest is executed; one of `enum clinux_digest`.
    int digest_kind;
    const uint8_t *digest;
    int cgroup;      // the folder of a cgroup, or -1
    int standard[3]; // -1: /dev/null
    /// A file that the child opens for writing instead, before it changes its user, or NULL; with these flags of open(2) in addition.
    const char *standard_path[3];
    int standard_flags[3];
    /// Standard error is a duplicate of standard output.
    bool error_is_output;
    const int *passed;
    size_t passed_count;
    /// Whether the child gets a copy of the memory (as with fork) instead of sharing it: see spawn.c.
    bool copy_memory;
};

/// A process before exec.
struct clinux_spawn_start {
    pid_t pid;
    int pidfd;
    int outcome; // read end of the error pipe, non-blocking
    void *memory;
    size_t memory_size;
};

/// What the child writes into the error pipe if it fails.
struct clinux_spawn_report {
    int32_t stage;
    int32_t error;
    int32_t index; // of the limit or descriptor
    /// For ENOENT: the file exists, but its interpreter does not.
    int32_t interpreter_missing;
};

/// Starts the process that creates processes (launcher.h). The first start of a process does so too. Called before this process has
/// descriptors of other programs, it never waits for them. Call it from the first thread: it is the parent.
void clinux_spawn_prepare(void);
/// Starts a process and returns at once; 0 or -errno.
int clinux_spawn(const struct clinux_spawn_request *request, struct clinux_spawn_start *start);
/// Whether the child was about to call execve.
bool clinux_spawn_reached_exec(const void *memory);
/// The first bytes of the file that could not be executed, NUL-terminated.
const char *clinux_spawn_first_bytes(const void *memory);
/// The digest of the file that was not executed because it has another one (CLINUX_STAGE_PROGRAM_DIGEST with EBADMSG).
const uint8_t *clinux_spawn_digest(const void *memory);
/// Frees the child's stack and arguments. Only call it after the end of the error pipe, when the child no longer uses them.
void clinux_spawn_release(void *memory, size_t memory_size);
