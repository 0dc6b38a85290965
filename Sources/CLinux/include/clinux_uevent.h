#pragma once

// Messages of the kernel and of udev about devices (netlink(7), NETLINK_KOBJECT_UEVENT).

#include <stdbool.h>

/// A socket that receives what udev sends after it has handled a device, or what the kernel sends at once. A descriptor, or -errno.
int clinux_uevent_socket(bool of_udev);
