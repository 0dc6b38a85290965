#!/usr/bin/python3
"""ticker.py PORT: an app that sends a number and the time to its client, 100 times per second.

ticker.py PORT watch: the client. When /run/vm-test/enough exists, it prints the count of missing numbers and the longest time
between two numbers for each phase, which it reads from /run/vm-test/phase."""
import os
import socket
import sys
import time

port = int(sys.argv[1])


def send():
    server = socket.create_server(("127.0.0.1", port))
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
    number, (client, _) = 0, server.accept()
    while True:
        number += 1
        client.sendall(f"{number} {time.monotonic()}\n".encode())
        time.sleep(0.01)


def watch():
    longest, last, missing = {}, None, 0
    for line in socket.create_connection(("127.0.0.1", port)).makefile():
        number, moment = int(line.split()[0]), float(line.split()[1])
        with open("/run/vm-test/phase") as file:
            phase = file.read().strip()
        if last:
            missing += number - last[0] - 1
            longest[phase] = max(longest.get(phase, 0.0), moment - last[1])
        last = (number, moment)
        if os.path.exists("/run/vm-test/enough"):
            break
    print(missing, "missing;", ", ".join(f"{phase}: {gap * 1000:.0f} ms" for phase, gap in longest.items()))


watch() if sys.argv[2:] == ["watch"] else send()
