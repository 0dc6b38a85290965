#!/usr/bin/python3
"""flood.py: an app that connects to its own D-Bus socket without a pause, from four threads."""
import os
import socket
import threading

path = os.environ["GREENROOM_BUS_ADDRESS"].split("path=")[1].split(",")[0]


def run():
    while True:
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(path)
                client.sendall(b"\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n")
        except OSError:
            pass


for _ in range(4):
    threading.Thread(target=run).start()
