#pragma once
#include <stddef.h>
long clinux_receive(int fd, void *buffer, size_t size, int *descriptors, int maximum, int *count, int *pid, unsigned *uid, int *flags);
int clinux_flock(int fd);
int clinux_process_mrelease(int pidfd);
int clinux_release_in_thread(int pidfd);
