#!/usr/bin/python3
"""pages.py serve PATH MIB: a server at a UNIX socket that has so much memory. For each line "COUNT STEP" it reads a byte of COUNT pages,
each STEP pages after the one before, and answers with their sum.

pages.py ask PATH COUNT STEP: sends such a line and prints the answer."""
import os
import socket
import sys

end = socket.socket(socket.AF_UNIX)
if sys.argv[1] == "serve":
    memory = bytearray(os.urandom(4096)) * (256 * int(sys.argv[3]))
    end.bind(sys.argv[2])
    end.listen()
    while True:
        client, _ = end.accept()
        count, step = map(int, client.recv(64).split())
        client.sendall(b"%d\n" % sum(memory[page * step * 4096] for page in range(count)))
        client.close()
else:
    end.connect(sys.argv[2])
    end.sendall("{} {}".format(*sys.argv[3:]).encode())
    print(end.recv(64).decode().strip())
