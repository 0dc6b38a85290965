#!/usr/bin/python3
"""server.py ADDRESS [USER]: a server that knows nothing of Greenroom. It answers each line with the line, its process ID and the
number of lines of this connection.

ADDRESS is a TCP port or the path of a UNIX socket. With USER the process changes its user when it listens, so that it is not
dumpable any more (prctl(2), PR_SET_DUMPABLE). With MEMORY, a variable, it holds so many MiB, and reads all of it for each line."""
import os
import selectors
import socket
import sys

address = sys.argv[1]
memory = bytearray(os.urandom(4096)) * (256 * int(os.environ.get("MEMORY", 0)))
digest = sum(memory[::4096])
if "/" in address:
    if os.path.exists(address):
        os.unlink(address)
    server = socket.socket(socket.AF_UNIX)
    server.bind(address)
    os.chmod(address, 0o777)
    server.listen(16)
else:
    server = socket.create_server(("", int(address)))
if sys.argv[2:]:
    # Without the module pwd, which python3-minimal has not.
    with open("/etc/passwd") as file:
        user = next(line.split(":") for line in file if line.startswith(sys.argv[2] + ":"))
    os.setgroups([])
    os.setgid(int(user[3]))
    os.setuid(int(user[2]))

selector = selectors.DefaultSelector()
selector.register(server, selectors.EVENT_READ)


def serve(client, state):
    try:
        data = client.recv(65536)
    except ConnectionError:
        data = b""
    if not data:
        selector.unregister(client)
        return client.close()
    lines = (state["rest"] + data).split(b"\n")
    state["rest"] = lines.pop()
    for line in lines:
        state["count"] += 1
        if sum(memory[::4096]) != digest:
            line = b"wrong memory"
        client.sendall(b"%s %d %d\n" % (line, os.getpid(), state["count"]))


while True:
    for key, _ in selector.select():
        if key.fileobj is server:
            selector.register(server.accept()[0], selectors.EVENT_READ, {"rest": b"", "count": 0})
        else:
            serve(key.fileobj, key.data)
