#!/usr/bin/python3
"""counter.py: a program that takes part in the lifecycle with Python's standard library only.

It counts seconds. It saves the count when it enters the background, keeps it as its restoration state, and adds the numbers of
pushes to it. greenroom-protocol(7) describes the messages, the inbox and the descriptors; counter.app names the signals.
"""
import os
import select
import signal
import socket
import sys

STATE = os.path.join(os.environ.get("STATE_DIRECTORY", "."), "count")
BACKGROUND, FOREGROUND = signal.SIGUSR1, signal.SIGUSR2
MEMORY, EXPIRING, INBOX = (signal.SIGRTMIN + number for number in (1, 2, 3))


def notify(*lines, descriptor=None):
    """Sends a message to the daemon: one datagram, an assignment a line (sd_notify(3))."""
    path = os.environ.get("NOTIFY_SOCKET")
    if not path:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as messages:
        messages.connect("\0" + path[1:] if path.startswith("@") else path)
        socket.send_fds(messages, ["\n".join(lines).encode()], [] if descriptor is None else [descriptor])


def stored_descriptor(name):
    """Returns the descriptor that an earlier process stored under a name (sd_listen_fds(3)), or None."""
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return None
    names = os.environ.get("LISTEN_FDNAMES", "").split(":")[:int(os.environ.get("LISTEN_FDS", "0"))]
    # The first passed descriptor is 3.
    return 3 + names.index(name) if name in names else None


class Counter:
    def __init__(self):
        self.count = 0
        # The number of the last push. A new process needs none of an earlier one: the inbox is emptied before a launch.
        self.last_push = 0
        self.restore()

    def restore(self):
        """Continues with the restoration state, or with what was saved to disk."""
        descriptor = stored_descriptor("state")
        if descriptor is not None:
            self.count = int(os.pread(descriptor, 64, 0) or b"0")
        elif os.path.exists(STATE):
            with open(STATE, encoding="ascii") as file:
                self.count = int(file.read() or "0")

    def save(self):
        with open(STATE + ".new", "w", encoding="ascii") as file:
            file.write(f"{self.count}\n")
        os.rename(STATE + ".new", STATE)

    def store(self):
        """Stores the restoration state: a sealable memfd with the name "state". A newer one replaces it."""
        descriptor = os.memfd_create("state", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.write(descriptor, f"{self.count}\n".encode())
        notify("FDSTORE=1", "FDNAME=state", descriptor=descriptor)
        os.close(descriptor)

    def enter_background(self):
        # The task keeps the app awake until the file is written; it has BackgroundTimeSec= for that.
        notify("X_GREENROOM_BEGIN_TASK=save", "X_GREENROOM_BACKGROUND=1")
        self.save()
        self.store()
        notify("X_GREENROOM_END_TASK=save", f"STATUS=Saved {self.count}.")

    def handle(self, number):
        if number == BACKGROUND:
            self.enter_background()
        elif number == FOREGROUND:
            notify(f"STATUS=Counting from {self.count}.")
        elif number == MEMORY:
            # A larger program empties its caches here.
            notify("STATUS=There was nothing to free.")
        elif number == EXPIRING:
            notify("X_GREENROOM_END_TASK=save")
        elif number == INBOX:
            self.read_inbox()
        elif number == signal.SIGTERM:
            self.save()
            sys.exit(0)

    def read_inbox(self):
        """Handles each push and completes its wake. The name of the file is push.NUMBER; names sort as the pushes came."""
        inbox = os.environ.get("GREENROOM_INBOX", "")
        for name in sorted(os.listdir(inbox)) if inbox else []:
            kind, _, number = name.partition(".")
            if kind != "push" or not number.isdigit():
                continue
            try:
                with open(os.path.join(inbox, name), encoding="utf-8", errors="replace") as file:
                    text = file.read().strip()
                os.unlink(os.path.join(inbox, name))
            except FileNotFoundError:
                # The daemon removes the oldest of too many files.
                continue
            # After a crash of the daemon a push may come again, with the same number. It is completed again, and not counted.
            is_new = int(number) > self.last_push
            if is_new:
                self.last_push = int(number)
                self.count += int(text) if text.isdigit() else 0
                self.store()
            result = "new-data" if is_new and text.isdigit() else "no-data"
            notify(f"X_GREENROOM_WAKE_DONE={result}", f"X_GREENROOM_WAKE_ID={int(number)}")

    def run(self):
        # Signal handlers only wake the loop: a signal is sent while the program catches or blocks it.
        reader, writer = socket.socketpair()
        for end in (reader, writer):
            end.setblocking(False)
        signal.set_wakeup_fd(writer.fileno())
        for number in (BACKGROUND, FOREGROUND, MEMORY, EXPIRING, INBOX, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        notify("READY=1", f"STATUS=Counting from {self.count}.")
        # The push that launched the app is there before any signal.
        self.read_inbox()
        while True:
            if select.select([reader], [], [], 1.0)[0]:
                for number in reader.recv(64):
                    self.handle(number)
            else:
                self.count += 1


if __name__ == "__main__":
    Counter().run()
