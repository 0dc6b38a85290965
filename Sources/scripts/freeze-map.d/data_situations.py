"""Situations of PostgreSQL and Redis (situations.py)."""

import os
import socket
import struct
import time

import servers
import talks
from situations import REQUEST, Failure, since, situation


# ---- PostgreSQL


class Session:
    """A session of PostgreSQL."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        talks.greet_postgres(self.socket)

    def query(self, text):
        """Returns the bytes of all rows."""
        body = text.encode() + b"\0"
        self.socket.sendall(b"Q" + struct.pack(">I", len(body) + 4) + body)
        return talks.read_messages(self.socket)

    def notification(self):
        """Waits for the message of a NOTIFY; returns its text."""
        kind, size = struct.unpack(">cI", talks.read_exactly(self.socket, 5))
        body = talks.read_exactly(self.socket, size - 4)
        if kind != b"A":
            raise Failure(f"a message of the kind {kind!r}")
        return body[4:].split(b"\0")[1]


def transaction(stage):
    one = Session(stage.port)
    one.query("create table words (word text)")
    one.query("begin")
    one.query("insert into words values ('kept')")
    stage.begin()
    stage.pause(2 * REQUEST)
    start = time.monotonic()
    one.query("commit")
    took = since(start)
    if Session(stage.port).query("select word from words")[-4:] != b"kept":
        raise Failure("the row is missing")
    return f"the commit {took} after its request, and the row"


def server_sleep(stage):
    one = Session(stage.port)
    stage.begin()
    one.query("select pg_sleep(15)")
    stage.due(15)
    return f"the answer after {since(stage.start)}"


def listen(stage):
    one = Session(stage.port)
    one.query("listen rows")
    stage.begin()
    stage.pause(2 * REQUEST)
    start = time.monotonic()
    Session(stage.port).query("notify rows, 'changed'")
    if one.notification() != b"changed":
        raise Failure("another notification")
    return f"the notification {since(start)} after the connection of its sender"


situation("a transaction that is open for 50s", "postgres", "suspended after RequestSec=", servers.postgres, transaction)
situation("select pg_sleep(15)", "postgres", "awake", servers.postgres, server_sleep)
situation("LISTEN, and a NOTIFY of another session after 50s", "postgres", "suspended after RequestSec=", servers.postgres,
          listen)


# ---- Redis


class Redis:
    """Sends commands and reads the answers of RESP2."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 90)

    def send(self, *words):
        parts = [word.encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))

    def receive(self):
        line = talks.read_lines(self.socket, 1)[0][:-2]
        count = int(line[1:]) if line[:1] in b"*$" else 0
        if line[:1] == b"$":
            return None if count < 0 else talks.read_exactly(self.socket, count + 2)[:-2]
        if line[:1] == b"*":
            return None if count < 0 else [self.receive() for _ in range(count)]
        return line

    def ask(self, *words):
        self.send(*words)
        return self.receive()


def blocked_until_time(stage):
    one = Redis(stage.port)
    stage.begin()
    if one.ask("BLPOP", "queue", "15") is not None:
        raise Failure("an element of an empty list")
    stage.due(15)
    return f"nothing, after {since(stage.start)}"


def blocked(stage):
    """Waits for longer than RequestSec= until another client pushes an element."""
    one = Redis(stage.port)
    stage.begin()
    one.send("BLPOP", "queue", "0")
    stage.pause(2 * REQUEST)
    start = time.monotonic()
    if Redis(stage.port).ask("RPUSH", "queue", "job") != b":1" or one.receive() != [b"queue", b"job"]:
        raise Failure("another answer than the element")
    return f"the element {since(start)} after the connection of its sender"


def background_save(stage):
    """Redis saves in a child, which is slowed down as by a slow disk. The client only asks whether it is done."""
    one = Redis(stage.port)
    if one.ask("DEBUG", "POPULATE", "75000") != b"+OK" or one.ask("CONFIG", "SET", "rdb-key-save-delay", "100") != b"+OK":
        raise Failure("redis refuses the settings")
    stage.begin()
    if not one.ask("BGSAVE").startswith(b"+Background"):
        raise Failure("redis refuses BGSAVE")
    path = f"{stage.site.folder}/dump.rdb"
    while not os.path.exists(path) and time.monotonic() < stage.start + 30:
        time.sleep(0.1)
    after = os.path.getmtime(path) - (time.time() - time.monotonic()) - stage.start if os.path.exists(path) else None
    if after is None:
        raise Failure("no file after 30s")
    return f"the file after {after:.1f}s"


def redis(site):
    start = servers.redis(site)
    start.command += ["--enable-debug-command", "yes"]
    return start


situation("BLPOP with a timeout of 15s", "redis-server", "awake", servers.redis, blocked_until_time)
situation("BLPOP without a timeout, an element after 50s", "redis-server", "suspended after RequestSec=", servers.redis,
          blocked)
situation("BGSAVE, a child that saves for 15s", "redis-server", "awake", redis, background_save)
