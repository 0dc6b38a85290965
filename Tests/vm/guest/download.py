#!/usr/bin/python3
"""download.py PORT PATH PACE: downloads a file at PACE bytes per second until /run/vm-test/enough exists, then without limit.
Prints the number of bytes, their SHA-256 and the longest time between two reads in ms."""
import hashlib
import os
import socket
import sys
import time

port, path, pace = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
connection = socket.socket()
# A small buffer, so that a pause of the server is noticed soon.
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
