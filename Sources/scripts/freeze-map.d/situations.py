"""The situations of the freeze map: real servers that are at work, or that only have connections, under a worker's default
settings (L51).

Each situation is a server of its own and what a client does. `awake`: the server is at work, so it must not be suspended until
the client has its answer. `suspended`: connections are established and nothing happens, so it is suspended, and woken by what
arrives. `suspended after RequestSec=`: it waits for something without a known end, so it is suspended after that time.
"""

import base64
import http.client
import json
import os
import re
import socket
import struct
import subprocess
import threading
import time

import programs
import servers
import talks
from programs import PYTHON, Site, Start, free_port, is_root

IDLE, REQUEST, QUIET = 2, 20, 10
HEAD = ["situation", "server", "it has to be", "suspended", "awake because of, woken by", "the client received", "as expected"]
DOWNLOAD = 10_000_000
DOWNLOAD_SECONDS = 30
situations = []


class Failure(Exception):
    pass


class Situation:
    """One server, one client, and the times of its states since the client began."""

    def __init__(self, daemon, number, name, server, expected, make, play, settings):
        self.daemon, self.name, self.server, self.expected = daemon, name, server, expected
        self.settings, self.make, self.play = settings, make, play
        self.id = "situation%02d" % number
        self.site = Site(f"{daemon.folder}/{self.id}")
        self.state, self.changes, self.wakes, self.reasons = None, [], [], []
        self.start = self.end = None
        self.received, self.problems = "", []

    def record(self, event):
        if self.end:
            return
        if event.get("kind") == "stateChanged":
            self.state = event.get("state")
            self.changes.append((time.monotonic(), self.state))
        elif event.get("kind") == "inputArrived":
            self.wakes.append((time.monotonic(), event.get("message", "").split("woken by ")[-1]))
        elif event.get("kind") in ("ended", "wokenTooOften", "inputNotWatched"):
            self.problems.append(event.get("message", event["kind"]).removeprefix(self.id + ": "))

    def launch(self):
        start = self.make(self.site)
        self.port = start.talk.port
        script = self.site.write("run", programs.script(start, self.site.folder))
        user = start.user or ("root" if is_root() else "")
        with open(f"{self.daemon.folder}/config/apps/{self.id}.app", "w") as file:
            file.write(
                f"[App]\nExecStart=/bin/sh {script}\nRole=worker\n{f'User={user}' if user else ''}\n"
                f"Type=listening\n[Lifecycle]\nIdleSec={IDLE}s\nRequestSec={REQUEST}s\nLaunchDeadlineSec=5min\n"
                f"{self.settings}\n")
        self.daemon.ctl("reload")
        self.daemon.apps[self.id] = self
        answer = self.daemon.ctl("launch", self.id, "--background")
        if not self.awaits(lambda: self.state == "suspended", 90):
            raise Failure(f"was not suspended at first: {answer.strip()}")

    def awaits(self, is_so, seconds):
        with self.daemon.changed:
            return self.daemon.changed.wait_for(is_so, seconds)

    def pause(self, seconds=QUIET):
        """The client sends nothing for so long."""
        time.sleep(seconds)

    def begin(self):
        """The client's part begins; what came before was only to learn what the server does at rest."""
        self.start = time.monotonic()

    def run(self):
        try:
            self.launch()
            watch = threading.Thread(target=self.sample, daemon=True)
            watch.start()
            self.received = self.play(self)
        except (Failure, OSError, http.client.HTTPException, subprocess.SubprocessError) as error:
            self.problems.append(f"{type(error).__name__}: {error}")
        self.end = time.monotonic()
        self.start = self.start or self.end

    def sample(self):
        """Asks now and then why the server is awake."""
        while self.end is None:
            time.sleep(1)
            if self.state == "suspended" or self.start is None:
                continue
            status = json.loads(self.daemon.ctl("--json", "status", self.id))
            for reason in status.get("awake", []):
                if reason["sentence"] not in self.reasons:
                    self.reasons.append(reason["sentence"])

    # ---- The row

    def suspended(self):
        """When the server was suspended, in seconds since the client began."""
        spans, since = [], None
        for at, state in self.changes + [(self.end, "end")]:
            if state == "suspended":
                since = since or at
            elif since:
                if at > self.start + 0.05 and since < self.end - 0.05:
                    spans.append((max(0.0, since - self.start), min(at, self.end) - self.start))
                since = None
        return spans

    def is_as_expected(self):
        spans = [span for span in self.suspended() if span[0] > 0.5]
        if self.problems:
            return False
        if self.expected == "awake":
            return not spans
        if self.expected == "suspended":
            return bool(spans)
        return bool(spans) and spans[0][0] > REQUEST - IDLE

    def row(self):
        spans = ", ".join(f"{one:.1f}s to {other:.1f}s" for one, other in self.suspended()) or "never"
        woken = [message.split(" (")[0] for at, message in self.wakes if self.start <= at <= self.end]
        because = "; ".join(self.reasons + [f"woken by {re.sub(':[0-9]+$', '', one)}" for one in woken[:3]])
        cells = [self.name, self.server, self.expected, spans, because, "; ".join([self.received] + self.problems),
                 "yes" if self.is_as_expected() else "no"]
        return [" ".join(cell.split()).replace("|", "/") for cell in cells]


def situation(name, server, expected, make, play, settings=""):
    """Adds a situation: `make` returns how the server is started (programs.py), and `play` is the client. It returns what the
    client received."""
    situations.append((name, server, expected, make, play, settings))


def since(start):
    return f"{time.monotonic() - start:.1f}s"


# ---- Downloads


def slow_download(stage):
    """Reads at a limited rate, with the kernel's default buffers."""
    expected = talks.text(1, DOWNLOAD)
    stage.begin()
    connection = http.client.HTTPConnection("127.0.0.1", stage.port, timeout=60)
    connection.request("GET", "/download")
    answer = connection.getresponse()
    received, part = b"", DOWNLOAD // (DOWNLOAD_SECONDS * 10)
    while more := answer.read(part):
        received += more
        time.sleep(max(0.0, stage.start + len(received) * DOWNLOAD_SECONDS / DOWNLOAD - time.monotonic()))
    connection.close()
    if received != expected:
        raise Failure(f"{len(received)} bytes that differ")
    return f"all {len(received):,} bytes in {since(stage.start)}"


def with_download(make):
    def start(site):
        site.write("site/download", talks.text(1, DOWNLOAD))
        return make(site)
    return start


situation("a download of 10 MB in 30s", "nginx", "awake", with_download(programs.nginx), slow_download)
situation("a download of 10 MB in 30s", "python3 -m http.server", "awake", with_download(programs.http_server), slow_download)


# ---- Requests


SLOW = """
import hashlib, http.server, subprocess, sys, time

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        until = time.monotonic() + 20
        if self.path == "/sleep":
            time.sleep(20)
        elif self.path == "/child":
            subprocess.run(["sleep", "20"])
        elif self.path == "/compute":
            while time.monotonic() < until:
                hashlib.sha256(bytes(1 << 20)).digest()
                time.sleep(0.05)
        body = self.path.encode() * 100
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def slow_server(site):
    port = free_port()
    return Start([PYTHON, site.write("slow.py", SLOW), str(port)], talks.WebTalk(port, []))


def fetch(connection, path):
    connection.request("GET", path)
    answer = connection.getresponse()
    if (answer.status, answer.read()) != (200, path.encode() * 100):
        raise Failure(f"another answer than expected: {answer.status}")


def slow_request(path):
    def play(stage):
        stage.begin()
        fetch(http.client.HTTPConnection("127.0.0.1", stage.port, timeout=60), path)
        return f"the answer after {since(stage.start)}"
    return play


def idle_connection(stage):
    """Two requests through one connection, and a pause between them."""
    stage.begin()
    connection = http.client.HTTPConnection("127.0.0.1", stage.port, timeout=60)
    connection.connect()
    connection.auto_open = 0
    fetch(connection, "/first")
    stage.pause()
    start = time.monotonic()
    fetch(connection, "/second")
    return f"both answers, the second one {since(start)} after its request"


situation("a request that is answered after 20s: sleep(20)", "python3 http.server", "awake", slow_server, slow_request("/sleep"))
situation("the same: a child runs for 20s", "python3 http.server", "awake", slow_server, slow_request("/child"))
situation("the same: the server computes at times", "python3 http.server", "awake", slow_server, slow_request("/compute"))
situation("a connection that is kept alive, 10s without a request", "python3 http.server", "suspended", slow_server,
          idle_connection)


def node_keep_alive(stage):
    """Node closes a connection 5s after its last answer, as its header says. A client that knows it is not surprised."""
    stage.begin()
    with socket.create_connection(("127.0.0.1", stage.port), 60) as connection:
        connection.sendall(b"GET /page.txt HTTP/1.1\r\nHost: a\r\n\r\n")
        expected = stage.site.pages[0][1]
        received = b""
        while not received.endswith(expected):
            more = connection.recv(65536)
            if not more:
                raise Failure("the end of the stream before the answer")
            received += more
        start = time.monotonic()
        if connection.recv(1) != b"":
            raise Failure("a byte after the answer")
        return f"the answer, and the end of the connection {since(start)} later"


situation("a connection that the server closes after 5s", "node", "awake", programs.node, node_keep_alive)


# ---- WebSocket


SOCKETS = """
import asyncio, sys
import tornado.ioloop, tornado.web, tornado.websocket

class Echo(tornado.websocket.WebSocketHandler):
    def on_message(self, message):
        words = message.split()
        loop = tornado.ioloop.IOLoop.current()
        if words[0] == "later":
            loop.call_later(float(words[1]), self.write_message, "now")
        elif words[0] == "every":
            tornado.ioloop.PeriodicCallback(lambda: self.write_message("tick"), 1000 * float(words[1])).start()
        else:
            self.write_message(message)

tornado.web.Application([("/", Echo)]).listen(int(sys.argv[1]), "127.0.0.1")
tornado.ioloop.IOLoop.current().start()
"""


class WebSocket:
    """A client of RFC 6455, for short text messages."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 90)
        key = base64.b64encode(os.urandom(16))
        self.socket.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key + b"\r\n\r\n")
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += talks.read_exactly(self.socket, 1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise Failure(head.decode(errors="replace"))

    def send(self, text):
        # A mask of zeros leaves the text as it is.
        self.socket.sendall(struct.pack(">BB", 0x81, 0x80 | len(text)) + bytes(4) + text.encode())

    def receive(self, expected):
        kind, size = struct.unpack(">BB", talks.read_exactly(self.socket, 2))
        text = talks.read_exactly(self.socket, size).decode()
        if (kind, text) != (0x81, expected):
            raise Failure(f"{text!r} instead of {expected!r}")


def socket_server(site):
    port = free_port()
    return Start([PYTHON, site.write("sockets.py", SOCKETS), str(port)], talks.WebTalk(port, []))


def client_message(stage):
    client = WebSocket(stage.port)
    stage.begin()
    stage.pause()
    start = time.monotonic()
    client.send("hello")
    client.receive("hello")
    return f"the answer {since(start)} after its message"


def timed_message(stage):
    """The server was idle for a while, and then is asked for a message in 15s."""
    client = WebSocket(stage.port)
    stage.pause()
    stage.begin()
    client.send("later 15")
    client.receive("now")
    return f"the message after {since(stage.start)}, which the server sends after 15s"


def ticks(stage):
    """The server sends a message each 5s, for as long as RequestSec= and as much again."""
    client = WebSocket(stage.port)
    stage.begin()
    client.send("every 5")
    latest = time.monotonic()
    client.socket.settimeout(2 * REQUEST)
    count, longest = 0, 0.0
    while time.monotonic() - stage.start < 3 * REQUEST:
        try:
            client.receive("tick")
        except TimeoutError:
            client.send("wake")
            client.receive("wake" if count < 0 else "tick")
        count += 1
        longest = max(longest, time.monotonic() - latest)
        latest = time.monotonic()
    return f"{count} messages in {since(stage.start)}; {longest:.1f}s between two at most"


situation("a WebSocket without messages for 10s, then one of the client", "tornado", "suspended", socket_server, client_message)
situation("a WebSocket on which the server sends a message after 15s", "tornado", "awake", socket_server, timed_message)
situation("a WebSocket on which the server sends a message each 5s", "tornado", "suspended after RequestSec=", socket_server,
          ticks)
situation("the same with KeepAwake=timers", "tornado", "awake", socket_server, ticks, "KeepAwake=cpu requests timers")


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
    stage.pause()
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
    return f"the answer after {since(stage.start)}"


def listen(stage):
    one = Session(stage.port)
    one.query("listen rows")
    stage.begin()
    stage.pause()
    start = time.monotonic()
    Session(stage.port).query("notify rows, 'changed'")
    if one.notification() != b"changed":
        raise Failure("another notification")
    return f"the notification {since(start)} after the connection of its sender"


situation("a transaction that is open for 10s", "postgres", "suspended", servers.postgres, transaction)
situation("select pg_sleep(15)", "postgres", "awake", servers.postgres, server_sleep)
situation("LISTEN, and a NOTIFY of another session after 10s", "postgres", "suspended", servers.postgres, listen)


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
    if one.ask("DEBUG", "POPULATE", "1500") != b"+OK" or one.ask("CONFIG", "SET", "rdb-key-save-delay", "10000") != b"+OK":
        raise Failure("redis refuses the settings")
    stage.begin()
    if not one.ask("BGSAVE").startswith(b"+Background"):
        raise Failure("redis refuses BGSAVE")
    stage.pause(20)
    path = f"{stage.site.folder}/dump.rdb"
    after = os.path.getmtime(path) - (time.time() - time.monotonic()) - stage.start if os.path.exists(path) else None
    return f"the file after {after:.1f}s" if after else "no file after 20s"


def redis(site):
    start = servers.redis(site)
    start.command += ["--enable-debug-command", "yes"]
    return start


situation("BLPOP with a timeout of 15s", "redis-server", "awake", servers.redis, blocked_until_time)
situation("BLPOP without a timeout, an element after 40s", "redis-server", "suspended after RequestSec=", servers.redis, blocked)
situation("BGSAVE, a child that saves for 15s", "redis-server", "awake", redis, background_save)


# ---- The table


def play(daemon, only):
    """Plays all situations at the same time. Returns them."""
    stages = [Situation(daemon, number, *entry) for number, entry in enumerate(situations)
              if not only or any(word in entry[0] + " " + entry[1] for word in only)]
    threads = [threading.Thread(target=stage.run, daemon=True) for stage in stages]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return stages


def table(rows):
    lines = [HEAD, ["---"] * len(HEAD)] + rows
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"
