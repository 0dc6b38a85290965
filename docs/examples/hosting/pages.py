#!/usr/bin/python3
"""pages.py: serves the files of the working directory over HTTP, on the listening socket that it is passed (sd_listen_fds(3))."""
import http.server
import os
import socket
import sys


class Handler(http.server.SimpleHTTPRequestHandler):
    # A proxy keeps its connection open for further requests.
    protocol_version = "HTTP/1.1"

    def address_string(self):
        # The client of a Unix socket has no address.
        return self.client_address[0] if self.client_address else "local"


if os.environ.get("LISTEN_PID") != str(os.getpid()):
    sys.exit("pages.py: no socket was passed: the manifest needs ListenStream=")
server = http.server.ThreadingHTTPServer(("", 0), Handler, bind_and_activate=False)
server.socket.close()
# The first passed descriptor is 3.
server.socket = socket.socket(fileno=3)
# Without a timeout: a server without timers is recognized as idle sooner.
server.serve_forever(poll_interval=None)
