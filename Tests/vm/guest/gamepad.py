#!/usr/bin/python3
"""gamepad.py: attaches a game controller of USB to the machine (a device of the kernel's uhid), and detaches it at its own end."""

import os
import signal
import struct

CREATE2, USB = 11, 3
# HID 1.11, 6.2.2: a game pad with eight buttons and the axes X and Y.
DESCRIPTOR = bytes.fromhex(
    "0501 0905 a101 0509 1901 2908 1500 2501 7501 9508 8102 0501 0930 0931 1581 257f 7508 9502 8102 c0")

device = os.open("/dev/uhid", os.O_RDWR)
names = struct.pack("128s64s64s", b"Test Gamepad", b"vm-test/input0", b"")
os.write(device, struct.pack("=I", CREATE2) + names + struct.pack(
    "=HHIIII4096s", len(DESCRIPTOR), USB, 0x1209, 1, 1, 0, DESCRIPTOR))
signal.pause()
