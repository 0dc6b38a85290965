"""Servers that send events to a client in the idle hour (idle.py): SSE, WebSocket, gRPC, MQTT. Each event has its number and the
time at which it was due, as an instant of CLOCK_REALTIME."""

import os
import select
import socket
import struct
import time

import servers
import talks
from idle import entry
from programs import PYTHON, Start, free_port
from web_situations import WebSocket

# Without an event for so long a stream is broken.
LONGEST_PAUSE = 180


class Bytes:
    """What arrives at a descriptor, in lines or in parts of a known size, until the measured time of the row is over."""

    def __init__(self, row, source):
        self.row, self.source, self.buffer = row, source, b""

    def fill(self):
        """Waits for more. False: the time is over."""
        left = self.row.left()
        if left <= 0 or not select.select([self.source], [], [], min(left, LONGEST_PAUSE))[0]:
            if left > LONGEST_PAUSE:
                raise TimeoutError(f"nothing for {LONGEST_PAUSE}s")
            return False
        more = os.read(self.source.fileno(), 65536)
        if not more:
            raise ConnectionResetError("end of the stream")
        self.buffer += more
        return True

    def line(self):
        """Without its end; None: the time is over."""
        while b"\n" not in self.buffer:
            if not self.fill():
                return None
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.strip()

    def exactly(self, size):
        while len(self.buffer) < size:
            if not self.fill():
                return None
        part, self.buffer = self.buffer[:size], self.buffer[size:]
        return part


def take(row, text):
    """An event, as `number instant`."""
    number, planned = text.split()
    row.event(int(number), float(planned))


def summarize(row, interval):
    row.received.append(f"an event each {interval}s")
    row.has_all(interval)


# ---- Server-Sent Events


def events(interval):
    """The client of a server that sends events at each interval; its address is a port or a path."""
    def play(row):
        with connect(row.start.talk.port) as connection:
            connection.sendall(b"GET /%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % interval)
            row.asked()
            source = Bytes(row, connection)
            while (line := source.line()) is not None:
                # Other lines are the head and the sizes of chunks.
                if line.startswith(b"data: "):
                    take(row, line[6:])
        summarize(row, interval)
    return play


def connect(address):
    if isinstance(address, int):
        return socket.create_connection(("127.0.0.1", address), talks.TIMEOUT)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    return connection


EVENTS = """
import asyncio, time

async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    start, number, interval = time.time(), 0, int(scope["path"][1:])
    while True:
        due = start + number * interval
        await asyncio.sleep(max(0, due - time.time()))
        await send({"type": "http.response.body", "body": b"data: %d %f\\n\\n" % (number, due), "more_body": True})
        number += 1
"""


def uvicorn(is_unix):
    def make(site):
        site.write("app.py", EVENTS)
        address = f"{site.folder}/socket" if is_unix else free_port()
        where = ["--uds", address] if is_unix else ["--host", "127.0.0.1", "--port", str(address)]
        return Start(["/usr/bin/uvicorn", *where, "--lifespan", "off", "app:app"], talks.WebTalk(address, []))
    return make


for transport in ("TCP", "a Unix socket"):
    for seconds in (2, 10, 30):
        entry(f"uvicorn, SSE each {seconds}s over {transport}", "uvicorn", "/usr/bin/uvicorn", play=events(seconds))(
            uvicorn(transport != "TCP"))


GO = """
package main

import ("fmt"; "net/http"; "os"; "time")

func main() {
    http.HandleFunc("/10", func(answer http.ResponseWriter, request *http.Request) {
        answer.Header().Set("Content-Type", "text/event-stream")
        start := time.Now()
        for number := 0; ; number++ {
            due := start.Add(time.Duration(number) * 10 * time.Second)
            select {
            case <-request.Context().Done(): return
            case <-time.After(time.Until(due)):
            }
            fmt.Fprintf(answer, "data: %d %f\\n\\n", number, float64(due.UnixNano()) / 1e9)
            answer.(http.Flusher).Flush()
        }
    })
    http.ListenAndServe("127.0.0.1:" + os.Args[1], nil)
}
"""


@entry("Go's net/http, SSE each 10s", "golang-go", "/usr/bin/go", play=events(10))
def go(site):
    port = free_port()
    site.write("events.go", GO)
    site.run("/usr/bin/env", f"HOME={site.folder}", "GOFLAGS=-p=1", "/usr/bin/go", "build", "-o", "events", "events.go")
    return Start([f"{site.folder}/events", str(port)], talks.WebTalk(port, []))


# ---- WebSocket


class Frames(WebSocket):
    """Messages of a WebSocket until the measured time is over. Pings are answered."""

    def __init__(self, row, path="/"):
        super().__init__(row.start.talk.port, path)
        self.source = Bytes(row, self.socket)

    def send(self, text, kind=0x81):
        # A mask of zeros leaves the text as it is.
        data = text.encode() if isinstance(text, str) else text
        size = bytes([0x80 | len(data)]) if len(data) < 126 else struct.pack(">BH", 0x80 | 126, len(data))
        self.socket.sendall(bytes([kind]) + size + bytes(4) + data)

    def receive(self):
        """The next message; None: the time is over."""
        while head := self.source.exactly(2):
            size = head[1]
            if size >= 126:
                packed = self.source.exactly(2 if size == 126 else 8)
                if packed is None:
                    return None
                size = int.from_bytes(packed, "big")
            data = self.source.exactly(size)
            if data is None:
                return None
            if head[0] == 0x88:
                raise ConnectionResetError("the server has closed the WebSocket")
            if head[0] == 0x89:
                self.send(data, 0x8A)
            elif head[0] & 0x0F in (1, 2):
                return data
        return None


def pushes(row):
    client = Frames(row)
    row.asked()
    while (message := client.receive()) is not None:
        take(row, message)
    client.socket.close()
    summarize(row, 10)


NODE = """
const { WebSocketServer } = require("/usr/share/nodejs/ws");
new WebSocketServer({ host: "127.0.0.1", port: Number(process.argv[2]) }).on("connection", client => {
    const start = Date.now();
    let number = 0;
    const next = () => {
        client.send(`${number} ${(start + number * 10000) / 1000}`);
        number += 1;
        timer = setTimeout(next, start + number * 10000 - Date.now());
    };
    let timer = setTimeout(next, 0);
    client.on("close", () => clearTimeout(timer));
});
"""


@entry("WebSocket of node (ws), a push each 10s", "node-ws", "/usr/bin/node", "/usr/share/nodejs/ws/index.js", play=pushes)
def node(site):
    port = free_port()
    return Start(["/usr/bin/node", site.write("push.js", NODE), str(port)], talks.WebTalk(port, []))


SOCKETS = """
import asyncio, sys, time, websockets

async def push(client, path=None):
    start, number = time.time(), 0
    while True:
        due = start + number * 10
        await asyncio.sleep(max(0, due - time.time()))
        await client.send("%d %f" % (number, due))
        number += 1

async def main():
    async with websockets.serve(push, "127.0.0.1", int(sys.argv[1])):
        await asyncio.Future()

asyncio.run(main())
"""


@entry("WebSocket of Python (websockets), a push each 10s", "python3-websockets",
       "/usr/lib/python3/dist-packages/websockets/__init__.py", play=pushes)
def sockets(site):
    port = free_port()
    return Start([PYTHON, site.write("push.py", SOCKETS), str(port)], talks.WebTalk(port, []))


# ---- gRPC


STREAM = """
import sys, time, grpc
from concurrent import futures

def stream(request, context):
    start, number = time.time(), 0
    while context.is_active():
        due = start + number * 10
        time.sleep(max(0, due - time.time()))
        yield b"%d %f" % (number, due)
        number += 1

server = grpc.server(futures.ThreadPoolExecutor(4))
methods = {"Get": grpc.unary_stream_rpc_method_handler(stream)}
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Events", methods),))
server.add_insecure_port("127.0.0.1:" + sys.argv[1])
server.start()
server.wait_for_termination()
"""
STREAM_CLIENT = """
import sys, grpc
with grpc.insecure_channel("127.0.0.1:" + sys.argv[1]) as channel:
    for event in channel.unary_stream("/test.Events/Get")(b""):
        print(event.decode(), flush=True)
"""


def calls(row):
    """The client is a process of its own, which is not frozen."""
    read, write = os.pipe()
    row.site.help(PYTHON, row.site.write("client.py", STREAM_CLIENT), str(row.start.talk.port), output=write)
    os.close(write)
    row.asked()
    with open(read, "rb", buffering=0) as pipe:
        source = Bytes(row, pipe)
        while (line := source.line()) is not None:
            take(row, line)
    summarize(row, 10)


@entry("gRPC for Python, a stream with a message each 10s", "python3-grpcio",
       "/usr/lib/python3/dist-packages/grpc/__init__.py", play=calls)
def grpc(site):
    port = free_port()
    return Start([PYTHON, site.write("stream.py", STREAM), str(port)], talks.WebTalk(port, []))


# ---- MQTT


class Publisher(talks.MQTT):
    """Publishes for mosquitto_sub, which subscribes to another topic."""

    def publish(self, text):
        self.socket.sendall(talks.mqtt_packet(0x30, talks.mqtt_text(b"idle") + text.encode()))


def publications(row):
    """The subscriber writes each message to its FIFO."""
    publisher = Publisher(row.start.broker)
    source = Bytes(row, open(row.start.talk.files.ends[1], "rb", buffering=0, closefd=False))
    row.asked()
    number, due = 0, time.time() + 5
    while due - time.time() < row.left() - 2:
        time.sleep(max(0.0, due - time.time()))
        publisher.publish(f"{number} {due}")
        if (line := source.line()) is None:
            break
        take(row, line)
        number, due = number + 1, due + 60
    publisher.close()
    summarize(row, 60)


@entry("mosquitto_sub, a message each 60s", "mosquitto-clients", "/usr/bin/mosquitto_sub", "/usr/sbin/mosquitto",
       play=publications)
def subscriber(site):
    port = free_port()
    broker = servers.mosquitto_at(site, port)
    start = Start(["/usr/bin/mosquitto_sub", "-h", "127.0.0.1", "-p", str(port), "-t", "idle"],
                  talks.StandardTalk(site.folder, None), listens=False, is_stdio=True,
                  before=[("its broker, mosquitto", "mosquitto", broker)])
    start.broker = port
    return start
