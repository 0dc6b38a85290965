#!/usr/bin/python3
"""filler.py MIB STEP: a program, or an app that is ready at once, that allocates MIB, STEP in each tenth of a second."""
import os
import socket
import sys
import time

total, step = int(sys.argv[1]), int(sys.argv[2])
if "NOTIFY_SOCKET" in os.environ:
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
memory = []
while sum(map(len, memory)) < total << 20:
    memory.append(b"\1" * (step << 20))
    time.sleep(0.1)
while True:
    time.sleep(1000)
