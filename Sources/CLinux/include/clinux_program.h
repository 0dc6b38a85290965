#pragma once

#include <stdint.h>

enum clinux_digest {
    CLINUX_DIGEST_NONE = 0,
    /// SHA-256 of the contents.
    CLINUX_DIGEST_SHA256,
    /// The digest that fs-verity enforces (FS_IOC_MEASURE_VERITY), with SHA-256. The file is not read.
    CLINUX_DIGEST_FS_VERITY,
};

enum { CLINUX_DIGEST_SIZE = 32 };

/// Reads the digest of a regular file; 0 or -errno. It may take seconds.
int clinux_program_digest(const char *program, int kind, uint8_t *digest);
