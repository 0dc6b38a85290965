// Numbers that a child of spawn.c reports and writes, before it has executed its program.

#pragma once

#include "clinux_spawn.h"
#include "syscalls.h"

enum {
    PID_DIGITS = 12,
};

/// The exit status that systemd.exec(5) gives to a failure in this stage.
RAW int exit_status(int stage) {
    switch (stage) {
    case CLINUX_STAGE_SIGNALS: return 207;
    case CLINUX_STAGE_SESSION: return 220;
    case CLINUX_STAGE_CGROUP: return 219;
    case CLINUX_STAGE_OOM_SCORE_ADJUST: return 206;
    case CLINUX_STAGE_STANDARD_INPUT: return 208;
    case CLINUX_STAGE_STANDARD_OUTPUT: return 209;
    case CLINUX_STAGE_STANDARD_ERROR: return 222;
    case CLINUX_STAGE_DESCRIPTORS: return 202;
    case CLINUX_STAGE_LIMITS: return 205;
    case CLINUX_STAGE_GROUPS:
    case CLINUX_STAGE_GROUP: return 216;
    case CLINUX_STAGE_USER: return 217;
    case CLINUX_STAGE_WORKING_DIRECTORY: return 200;
    case CLINUX_STAGE_NO_NEW_PRIVILEGES: return 227;
    case CLINUX_STAGE_READ_ONLY_PROGRAM: return 226;
    default: return 203;
    }
}

RAW size_t write_number(char *digits, long number) {
    char reversed[PID_DIGITS * 2];
    size_t count = 0, length = 0;
    unsigned long rest = number < 0 ? -(unsigned long)number : (unsigned long)number;
    do {
        reversed[count++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest != 0);
    if (number < 0)
        digits[length++] = '-';
    while (count > 0)
        digits[length++] = reversed[--count];
    digits[length] = 0;
    return length;
}
