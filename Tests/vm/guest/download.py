#!/usr/bin/python3
"""download.py PORT PATH PACE: downloads a file at PACE bytes a second until /run/vm-test/enough is there, then as fast as
it comes. Prints how many bytes came, their SHA-256, and the longest time that it waited for the next one."""
import hashlib
import os
import socket
import sys
import time

port, path, pace = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
connection = socket.socket()
# Little is on its way at a time: what the server does not do is noticed soon.
connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
connection.connect(("127.0.0.1", port))
connection.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
data, count, longest, digest = b"", 0, 0.0, hashlib.sha256()
while b"\r\n\r\n" not in data:
    data += connection.recv(16384)
data = data.partition(b"\r\n\r\n")[2]
while True:
    digest.update(data)
    count += len(data)
    if not os.path.exists("/run/vm-test/enough"):
        time.sleep(16384 / pace)
    began = time.monotonic()
    data = connection.recv(16384)
    longest = max(longest, time.monotonic() - began)
    if not data:
        break
print(count, digest.hexdigest(), f"{longest * 1000:.0f}")
