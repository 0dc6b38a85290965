"""How the freeze map sends requests to programs and reads their answers.

A talk opens connections: talk.open() for one that stays open over many rounds, talk.fresh() for one that is used once. A
connection has exchange(number), which returns the bytes that were expected and those that arrived, and close(). It raises
ConnectionError if the program has closed it, and TimeoutError if the answer does not arrive.
"""

import hashlib
import http.client
import os
import select
import socket
import ssl
import struct
import subprocess
import time

TIMEOUT = 30
# Each round with such a number transfers much, so that the buffers of a frozen program become full.
LARGE_EVERY = 50


def text(number, size):
    """Printable bytes that differ in each round."""
    digest = hashlib.sha256(str(number).encode()).hexdigest().encode()
    return (digest * (size // len(digest) + 1))[:size]


def is_large(number):
    return number % LARGE_EVERY == LARGE_EVERY - 1


def transfer(source, sink, request, size):
    """Writes to the descriptor sink and reads from source at the same time, until `size` bytes have arrived."""
    deadline = time.monotonic() + TIMEOUT
    received = b""
    request = memoryview(request)
    while len(received) < size or request:
        left = deadline - time.monotonic()
        readable, writable, _ = select.select([source], [sink] if request else [], [], max(0, left))
        if left <= 0 and not readable and not writable:
            raise TimeoutError(f"{size - len(received)} bytes did not arrive")
        if writable:
            request = request[os.write(sink, request[:65536]):]
        if readable:
            more = os.read(source, 1 << 20)
            if not more:
                raise ConnectionResetError("end of the stream")
            received += more
    return received


def compare(expected, received):
    """How many bytes were lost, and how many are not those that were expected."""
    if expected == received:
        return 0, 0
    lost = max(0, len(expected) - len(received))
    surplus = max(0, len(received) - len(expected))
    return lost, surplus + sum(1 for one, other in zip(expected, received) if one != other)


class Stream:
    """A stream socket with requests and answers that `encode` makes: encode(number) → (request, expected)."""

    def __init__(self, address, encode, greet=None):
        if isinstance(address, int):
            self.socket = socket.create_connection(("127.0.0.1", address), TIMEOUT)
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(TIMEOUT)
            self.socket.connect(address)
        self.encode = encode
        if greet:
            greet(self.socket)

    def exchange(self, number):
        request, expected = self.encode(number)
        raw = self.socket.fileno()
        self.socket.setblocking(False)
        return expected, transfer(raw, raw, request, len(expected))

    def close(self):
        self.socket.close()


class StreamTalk:
    def __init__(self, address, encode, greet=None):
        self.port = address
        self.open = self.fresh = lambda: Stream(address, encode, greet)


def read_lines(connection, count):
    """Reads lines byte by byte, so that nothing of what follows is lost."""
    lines = []
    for _ in range(count):
        line = b""
        while not line.endswith(b"\n"):
            byte = connection.recv(1)
            if not byte:
                raise ConnectionResetError("end of the stream")
            line += byte
        lines.append(line)
    return lines


# ---- HTTP


class Web:
    def __init__(self, port, pages):
        self.port, self.pages = port, pages
        self.renew()

    def renew(self):
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        self.connection.connect()
        # A closed connection is an error here; by default another one would be opened.
        self.connection.auto_open = 0

    def has_ended(self):
        """Whether the server has closed the connection since the last answer, as clients look before they send."""
        connection = self.connection.sock
        if connection is None or not select.select([connection], [], [], 0)[0]:
            return False
        try:
            return not connection.recv(1, socket.MSG_PEEK)
        except ConnectionError:
            return True

    def exchange(self, number):
        path, expected = self.pages[1 if is_large(number) and len(self.pages) > 1 else 0]
        try:
            self.connection.request("GET", path)
            response = self.connection.getresponse()
            body = response.read()
        except http.client.IncompleteRead as error:
            body = error.partial
            response = None
        except (http.client.CannotSendRequest, http.client.NotConnected, http.client.BadStatusLine) as error:
            raise ConnectionResetError(str(error) or type(error).__name__) from error
        if response is not None and response.status != 200:
            body = f"status {response.status}".encode()
        # A server that answers one request for each connection has an open one while it is frozen, too.
        if response is None or response.will_close:
            self.connection.close()
            self.renew()
        if expected is None:
            # The first answer, of a program that was not frozen yet.
            self.pages[0] = (path, body)
            expected = body
        return expected, body

    def close(self):
        self.connection.close()


class WebTalk:
    """pages: (path, bytes) of a small and perhaps a large page. Without bytes all answers have to be the same."""

    def __init__(self, port, pages):
        self.port = port
        self.open = self.fresh = lambda: Web(port, pages)


# ---- DNS


class DNS:
    def __init__(self, talk, port):
        self.talk = talk
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(TIMEOUT)
        self.socket.connect(("127.0.0.1", port))

    def exchange(self, number):
        name = b"".join(bytes([len(part)]) + part for part in (b"freeze", b"test", b""))
        identity = struct.pack(">H", number & 0xFFFF)
        self.socket.send(identity + struct.pack(">HHHHH", 0x0100, 1, 0, 0, 0) + name + struct.pack(">HH", 1, 1))
        try:
            answer = self.socket.recv(4096)
        except ConnectionRefusedError as error:
            raise ConnectionResetError("connection refused") from error
        if self.talk.learned is None:
            self.talk.learned = answer[2:]
        return identity + self.talk.learned, answer

    def close(self):
        self.socket.close()


class DNSTalk:
    """All answers have to be like the first one, of a server that was not frozen yet."""

    def __init__(self, port):
        self.learned = None
        self.open = self.fresh = lambda: DNS(self, port)


# ---- PostgreSQL


def greet_postgres(connection):
    body = struct.pack(">I", 196608) + b"user\0postgres\0database\0postgres\0\0"
    connection.sendall(struct.pack(">I", len(body) + 4) + body)
    read_messages(connection)


def read_exactly(connection, size):
    received = b""
    while len(received) < size:
        more = connection.recv(size - len(received))
        if not more:
            raise ConnectionResetError("end of the stream")
        received += more
    return received


def read_messages(connection):
    """Reads up to ReadyForQuery and returns the bytes of all rows."""
    rows = b""
    while True:
        kind, size = struct.unpack(">cI", read_exactly(connection, 5))
        body = read_exactly(connection, size - 4)
        if kind == b"D":
            rows += body[6:]
        if kind == b"E":
            raise ConnectionResetError(body.replace(b"\0", b" ").decode(errors="replace"))
        if kind == b"Z":
            return rows


class Postgres(Stream):
    def exchange(self, number):
        size = 1 << 20 if is_large(number) else 200
        word = text(number, 64)
        query = b"select repeat('%s', %d)\0" % (word, size // 64)
        self.socket.settimeout(TIMEOUT)
        self.socket.sendall(b"Q" + struct.pack(">I", len(query) + 4) + query)
        return word * (size // 64), read_messages(self.socket)


class PostgresTalk:
    def __init__(self, port):
        self.port = port
        self.open = self.fresh = lambda: Postgres(port, None, greet_postgres)


# ---- MQTT


def mqtt_packet(kind, body):
    size, length = b"", len(body)
    while True:
        size += bytes([length % 128 | (0x80 if length > 127 else 0)])
        length //= 128
        if not length:
            return bytes([kind]) + size + body


def mqtt_text(value):
    return struct.pack(">H", len(value)) + value


class MQTT(Stream):
    """Subscribes to a topic of its own and receives what it publishes."""

    count = 0

    def __init__(self, port):
        MQTT.count += 1
        self.topic = b"freeze/%d" % MQTT.count
        super().__init__(port, self.publication, self.subscribe)

    def subscribe(self, connection):
        head = mqtt_text(b"MQTT") + bytes([4, 2, 0, 0])
        connection.sendall(mqtt_packet(0x10, head + mqtt_text(b"client%d" % MQTT.count)))
        read_exactly(connection, 4)
        connection.sendall(mqtt_packet(0x82, b"\0\1" + mqtt_text(self.topic) + b"\0"))
        read_exactly(connection, 5)

    def publication(self, number):
        packet = mqtt_packet(0x30, mqtt_text(self.topic) + text(number, 200_000 if is_large(number) else 200))
        return packet, packet


class MQTTTalk:
    def __init__(self, port):
        self.open = self.fresh = lambda: MQTT(port)


# ---- TLS, SSH, FTP


class TLS(Stream):
    def __init__(self, port, encode):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        super().__init__(port, encode)
        self.socket = context.wrap_socket(self.socket)

    def exchange(self, number):
        request, expected = self.encode(number)
        self.socket.sendall(request)
        return expected, read_exactly(self.socket, len(expected))


class TLSTalk:
    def __init__(self, port, encode):
        self.open = self.fresh = lambda: TLS(port, encode)


class Pipes:
    """A command that sends what it reads to the program and prints the answers."""

    def __init__(self, command, encode):
        self.encode = encode
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
        for pipe in (self.process.stdin, self.process.stdout):
            os.set_blocking(pipe.fileno(), False)

    def exchange(self, number):
        request, expected = self.encode(number)
        received = transfer(self.process.stdout.fileno(), self.process.stdin.fileno(), request, len(expected))
        return expected, received

    def close(self):
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class SSHTalk:
    """A login that executes cat, and connections that read the first line."""

    def __init__(self, port, command, encode):
        self.learned = None
        self.port = port
        self.open = lambda: Pipes(command, encode)

    def fresh(self):
        talk = self

        class Banner(Stream):
            def exchange(self, number):
                self.socket.settimeout(TIMEOUT)
                line = read_lines(self.socket, 1)[0]
                talk.learned = talk.learned or line
                return talk.learned, line

        return Banner(self.port, None)


def log_in(connection):
    read_lines(connection, 1)
    for line in (b"USER anonymous\r\n", b"PASS freeze\r\n"):
        connection.sendall(line)
        answer = read_lines(connection, 1)[0]
    if not answer.startswith(b"230"):
        raise ConnectionResetError(answer.decode(errors="replace"))


# ---- Standard input and output, D-Bus, X


class Files:
    """Two FIFOs. They stay open, so that the program never sees the end of its input."""

    def __init__(self, folder):
        self.ends = []
        for name in ("in", "out"):
            path = f"{folder}/{name}"
            os.mkfifo(path, 0o666)
            self.ends.append(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))

    def drain(self):
        try:
            while os.read(self.ends[1], 65536):
                pass
        except BlockingIOError:
            pass


class StandardTalk:
    def __init__(self, folder, encode):
        self.files = Files(folder)
        self.encode = encode
        self.open = self.fresh = lambda: self

    def exchange(self, number):
        request, expected = self.encode(number)
        return expected, transfer(self.files.ends[1], self.files.ends[0], request, len(expected))

    def close(self):
        pass


class CommandTalk:
    """A command whose output is the answer: commands(number) → (list of commands, expected output of the last)."""

    def __init__(self, commands):
        self.commands = commands
        self.open = self.fresh = lambda: self

    def exchange(self, number):
        commands, expected = self.commands(number)
        output = b""
        for command in commands:
            try:
                done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT)
            except subprocess.TimeoutExpired as error:
                raise TimeoutError(f"{command[0]} did not end") from error
            if done.returncode != 0:
                raise ConnectionResetError(done.stderr.decode(errors="replace").strip())
            output = done.stdout
        return expected, output

    def close(self):
        pass


class SpyTalk:
    """xprop -spy: each change of the property is a line of its output."""

    def __init__(self, folder, display):
        self.files = Files(folder)
        self.display = display
        self.open = self.fresh = lambda: self

    def exchange(self, number):
        self.files.drain()
        word = text(number, 4096 if is_large(number) else 64).decode()
        expected = f'GREENROOM = "{word}"\n'.encode()
        subprocess.run(set_property(self.display, word), check=True, timeout=TIMEOUT)
        return expected, transfer(self.files.ends[1], self.files.ends[0], b"", len(expected))

    def close(self):
        pass


def set_property(display, word):
    return ["/usr/bin/xprop", "-display", display, "-root", "-f", "GREENROOM", "8s", "-set", "GREENROOM", word]
