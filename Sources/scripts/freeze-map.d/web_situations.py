"""Situations of web servers (situations.py): downloads, requests, connections that are kept alive, WebSocket."""

import base64
import http.client
import os
import socket
import struct
import time

import programs
import talks
from programs import PYTHON, Start, free_port
from situations import REQUEST, Failure, since, situation

DOWNLOAD = 10_000_000
DOWNLOAD_SECONDS = 30


# ---- Downloads


def slow_download(stage):
    """Reads at a limited rate, with the kernel's default buffers: at the end these hold some MB that the server has written."""
    expected = talks.text(1, DOWNLOAD)
    stage.begin()
    connection = http.client.HTTPConnection("127.0.0.1", stage.port, timeout=60)
    connection.request("GET", "/download")
    own = connection.sock.getsockname()[1]
    answer = connection.getresponse()
    received, part = b"", DOWNLOAD // (DOWNLOAD_SECONDS * 10)
    while more := answer.read(part):
        received += more
        if not stage.done_at and not has_server(stage.port, own):
            stage.done_at = time.monotonic()
        time.sleep(max(0.0, stage.start + len(received) * DOWNLOAD_SECONDS / DOWNLOAD - time.monotonic()))
    connection.close()
    if received != expected:
        raise Failure(f"{len(received)} bytes that differ")
    closed = f", {stage.done_at - stage.start:.1f}s after its begin closed by the server" if stage.done_at else ""
    return f"all {len(received):,} bytes in {since(stage.start)}{closed}"


def has_server(port, client):
    """Whether a process has the server's end of a connection over IPv4; the kernel sends what is left of a closed one."""
    with open("/proc/net/tcp") as file:
        for line in list(file)[1:]:
            words = line.split()
            if (int(words[1].split(":")[1], 16), int(words[2].split(":")[1], 16)) == (port, client):
                return words[9] != "0"
    return False


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
        stage.due(20)
        return f"the answer after {since(stage.start)}"
    return play


def idle_connection(stage):
    """Two requests through one connection, and a pause between them."""
    stage.begin()
    connection = http.client.HTTPConnection("127.0.0.1", stage.port, timeout=60)
    connection.connect()
    connection.auto_open = 0
    fetch(connection, "/first")
    stage.pause(2 * REQUEST)
    start = time.monotonic()
    fetch(connection, "/second")
    return f"both answers, the second one {since(start)} after its request"


situation("a request that is answered after 20s: sleep(20)", "python3 http.server", "awake", slow_server,
          slow_request("/sleep"))
situation("the same: a child sleeps for 20s", "python3 http.server", "awake", slow_server, slow_request("/child"))
situation("the same: the server computes at times", "python3 http.server", "awake", slow_server, slow_request("/compute"))
situation("a connection that is kept alive, 50s without a request", "python3 http.server", "suspended after RequestSec=",
          slow_server, idle_connection)


TIMED = """
require("http").createServer((request, response) => {
    setTimeout(() => response.end(request.url.repeat(100)), 20000);
}).listen(Number(process.argv[2]), "127.0.0.1");
"""


def timed_server(site):
    port = free_port()
    return Start(["/usr/bin/node", site.write("timed.js", TIMED), str(port)], talks.WebTalk(port, []))


situation("a request that is answered after 20s: setTimeout", "node", "suspended", timed_server, slow_request("/later"))


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
        stage.due(6, start)
        return f"the answer, and the end of the connection {since(start)} later"


def no_client(stage):
    """Node has a pipe with a byte that it never reads, the lock of libuv."""
    stage.begin()
    stage.pause()
    start = time.monotonic()
    connection = stage.talk.fresh()
    expected, received = connection.exchange(1)
    connection.close()
    if expected != received:
        raise Failure("another page")
    return f"the page {since(start)} after its request"


situation("no client for 10s, then a request", "node", "suspended", programs.node, no_client)
situation("a connection that the server closes after 5s", "node", "never cut", programs.node, node_keep_alive)


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

    def __init__(self, port, path="/"):
        self.socket = socket.create_connection(("127.0.0.1", port), 90)
        key = base64.b64encode(os.urandom(16))
        self.socket.sendall(b"GET " + path.encode() + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                            b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
                            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key + b"\r\n\r\n")
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += talks.read_exactly(self.socket, 1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise Failure(head.decode(errors="replace"))

    def send(self, text):
        # A mask of zeros leaves the text as it is.
        self.socket.sendall(struct.pack(">BB", 0x81, 0x80 | len(text)) + bytes(4) + text.encode())

    def receive(self, *expected):
        kind, size = struct.unpack(">BB", talks.read_exactly(self.socket, 2))
        text = talks.read_exactly(self.socket, size).decode()
        if kind != 0x81 or text not in expected:
            raise Failure(f"{text!r} instead of {expected[0]!r}")
        return text


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
    stage.due(15)
    return f"the message after {since(stage.start)}, which the server sends after 15s"


def messages(interval, seconds):
    """The server sends a message at each interval."""
    def play(stage):
        client = WebSocket(stage.port)
        stage.begin()
        client.send(f"every {interval}")
        client.socket.settimeout(2 * REQUEST)
        for number in range(1, seconds // interval + 1):
            client.receive("tick")
            stage.due(number * interval)
        return f"{number} messages in {since(stage.start)}"
    return play


situation("a WebSocket without messages for 10s, then one of the client", "tornado", "suspended", socket_server, client_message)
situation("a WebSocket on which the server sends a message after 15s", "tornado", "suspended", socket_server, timed_message)
situation("a WebSocket on which the server sends a message each 6s", "tornado", "suspended", socket_server, messages(6, 72))
situation("a WebSocket on which the server sends a message each 2s", "tornado", "awake", socket_server, messages(2, 3 * REQUEST))
