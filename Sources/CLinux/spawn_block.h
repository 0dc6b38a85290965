// What a child of spawn.c gets from its parent.

#pragma once

#include "clinux_spawn.h"

#include <stdatomic.h>
#include <sys/types.h>

enum {
    FIRST_BYTES = 256, // what the kernel reads of a script (BINPRM_BUF_SIZE)
};

/// Copies of everything that the child needs. The block is freed after the outcome was read; the request is valid only during
/// the call.
struct block {
    _Atomic(bool) reached_exec;
    int report; // write end of the pipe, as numbered in the table that the child gets
    const char *executable;
    char **arguments;
    char **environment;
    char **pid_values; // where the child writes the digits of each pid variable
    size_t pid_value_count;
    const char *working_directory;
    bool change_credentials;
    uid_t uid;
    gid_t gid;
    gid_t *groups;
    size_t group_count;
    mode_t umask;
    struct clinux_limit *limits;
    size_t limit_count;
    bool set_oom_score_adjust;
    int oom_score_adjust;
    bool no_new_privileges;
    bool ignore_sigpipe;
    const char *read_only_program;
    int digest_kind;
    uint8_t digest[CLINUX_DIGEST_SIZE]; // the wanted one; the child writes the one that it found instead
    bool join_cgroup; // only if the kernel could not create the child in the cgroup
    int cgroup;
    int standard[3];
    const char *standard_path[3];
    int standard_flags[3];
    bool error_is_output;
    int *passed; // overwritten by the child with its own numbers
    size_t passed_count;
    char first_bytes[FIRST_BYTES];
};
