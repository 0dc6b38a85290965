"""relay.py SOCKET: the client that certify runs for the freeze map: passes each line to the thread that makes the exchange, and its
answer back."""

import socket
import sys

thread = socket.socket(socket.AF_UNIX)
thread.connect(sys.argv[1])
answers = thread.makefile()
for line in sys.stdin:
    thread.sendall(line.encode())
    sys.stdout.write(answers.readline())
    sys.stdout.flush()
