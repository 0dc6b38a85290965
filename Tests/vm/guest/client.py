#!/usr/bin/python3
"""client.py ask ADDRESS: sends a line to a server (server.py) and prints the answer.

client.py load PAUSE ADDRESS…: sends lines to each server, one at a time and with up to PAUSE seconds between them, every fifth one on
a new connection, until /run/vm-test/enough exists. Prints the number of lines, the number of correct answers and the longest time
to an answer in ms, then each error."""
import os
import random
import socket
import sys
import threading
import time


def connect(address):
    client = socket.socket(socket.AF_UNIX if "/" in address else socket.AF_INET)
    client.settimeout(120)
    client.connect(address if "/" in address else ("127.0.0.1", int(address)))
    return client


def request(client, line):
    client.sendall(b"%s\n" % line)
    data = b""
    while not data.endswith(b"\n"):
        part = client.recv(4096)
        if not part:
            raise EOFError("the connection ended")
        data += part
    return data.decode().strip()


class Load(threading.Thread):
    def __init__(self, pause, address):
        super().__init__()
        self.pause, self.address = pause, address
        self.sent, self.answers, self.longest, self.errors = 0, 0, 0.0, []

    def run(self):
        choice, count, client = random.Random(self.address), 0, None
        while not os.path.exists("/run/vm-test/enough"):
            if self.sent % 5 == 0:
                if client:
                    client.close()
                client, count = None, 0
            self.sent += 1
            count += 1
            began = time.monotonic()
            try:
                client = client or connect(self.address)
                line, process, number = request(client, b"%d" % self.sent).split()
                if line == str(self.sent) and int(number) == count:
                    self.answers += 1
                else:
                    self.errors.append(f"{self.address}: answer {line}, {number} to {self.sent}, {count}")
            except (OSError, EOFError, ValueError) as error:
                self.errors.append(f"{self.address}: {error!r}")
                client, count = None, 0
            self.longest = max(self.longest, time.monotonic() - began)
            time.sleep(choice.uniform(0, self.pause))


if sys.argv[1] == "ask":
    print(request(connect(sys.argv[2]), b"hello"))
else:
    loads = [Load(float(sys.argv[2]), address) for address in sys.argv[3:]]
    for load in loads:
        load.start()
    for load in loads:
        load.join()
    print(sum(load.sent for load in loads), sum(load.answers for load in loads), f"{max(load.longest for load in loads) * 1000:.0f}")
    for load in loads:
        print(*load.errors, sep="\n", end="\n" if load.errors else "")
