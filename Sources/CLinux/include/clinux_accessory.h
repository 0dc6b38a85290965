#pragma once

#include <stdbool.h>
#include <stdint.h>

// What a descriptor of another process is, by its path in /proc. The file system is not asked: one in user space or on a server may never
// answer, and the process may replace the descriptor meanwhile.

/// Whether it is a character device, and its numbers.
bool clinux_character_device(const char *path, uint32_t *major, uint32_t *minor);
/// Whether it is a socket of Bluetooth.
bool clinux_is_bluetooth_socket(const char *path);
