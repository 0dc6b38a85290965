#!/usr/bin/python3
"""pages.py FOLDER [PORT]: `python3 -m http.server` for the files of a folder, on the socket that it is passed (LISTEN_FDS), or on a
port of 127.0.0.1."""
import functools
import http.server
import os
import socket
import sys

handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
is_passed = os.environ.get("LISTEN_PID") == str(os.getpid())
address = ("127.0.0.1", 0 if is_passed else int(sys.argv[2]))
server = http.server.ThreadingHTTPServer(address, handler, bind_and_activate=not is_passed)
if is_passed:
    server.socket.close()
    # The first passed descriptor is 3.
    server.socket = socket.socket(fileno=3)
server.serve_forever()
