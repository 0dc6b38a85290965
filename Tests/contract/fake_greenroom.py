#!/usr/bin/python3
"""fake_greenroom.py [--several-connections] TRANSCRIPT… -- COMMAND…: runs an app and plays greenroomd for it, as transcripts say.

Each transcript gets a new process of COMMAND, with GREENROOM_BUS_ADDRESS and the other variables of an app. The exit status is 0
if every process did what its transcript expects. README.md in this folder describes the transcripts, and the option.
"""
import collections
import contextlib
import fcntl
import json
import os
import pathlib
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "Sources/Python"))
from greenroom import _wire  # noqa: E402

PATH, INTERFACE = "/org/greenroom/self", "org.greenroom.Self1"
# How long a step may take, in seconds. It only bounds a failure.
STEP_SECONDS = 30.0


class Mismatch(Exception):
    """The app did not do what the transcript expects."""


def variants(values):
    """JSON values as a{sv}: text s, whole numbers t, other numbers d, lists of text as, objects a{sv}."""
    kinds = {str: "s", bool: "b", int: "t", float: "d", list: "as", dict: "a{sv}"}
    contents = {key: variants(value) if isinstance(value, dict) else value for key, value in values.items()}
    return {key: _wire.Variant(kinds[type(values[key])], value) for key, value in contents.items()}


def matches(expected, found, captured):
    """Compares JSON values. "*" matches all; "$name" matches all the first time, and later the same value."""
    if expected == "*":
        return True
    if isinstance(expected, str) and re.fullmatch(r"\$\w+", expected):
        return captured.setdefault(expected, found) == found
    if isinstance(expected, dict) and isinstance(found, dict):
        return expected.keys() == found.keys() and all(matches(expected[key], found[key], captured) for key in expected)
    if isinstance(expected, list) and isinstance(found, (list, tuple)):
        return len(expected) == len(found) and all(map(matches, expected, found, [captured] * len(found)))
    return type(expected) is type(found) and expected == found


class Player:
    """Plays one transcript for one process."""

    def __init__(self, folder, command):
        self.path = folder + "/bus"
        self.command = command
        self.listener = self.connection = self.process = None
        self.decoder = _wire.Decoder()
        self.messages = []
        self.captured = {}
        self.serial = 0
        self.order = "<"
        self.piece = None
        self.last = None
        self.environment = {
            "GREENROOM_BUS_ADDRESS": "unix:path=" + self.path, "GREENROOM_APP": "contract",
            "GREENROOM_LAUNCH_STATE": "inactive", "GREENROOM_LAUNCH_REASON": "user",
        }
        self.do_listen()

    # ---- Steps: do_NAME(arguments…)

    def do_listen(self):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(8)

    def do_unlisten(self):
        self.listener.close()
        os.unlink(self.path)

    def do_environment(self, name, value):
        self.environment[name] = value

    def do_connect(self):
        """Starts the process before its first connection."""
        self.start()
        self.readable(self.listener, "a connection")
        self.connection = self.listener.accept()[0]
        self.decoder = _wire.Decoder()
        self.messages = []
        self.authenticate(self.connection)

    def do_expect(self, member, *arguments):
        """A call with these arguments, which is answered by the next steps, or at once without values."""
        message = self.next_message()
        expected = json.loads(" ".join(arguments)) if arguments else []
        found = message.body
        if message.signature.endswith("h"):
            found = [*message.body[:-1], self.content(message)]
        where = (message.type, message.path, message.interface)
        if where != (_wire.METHOD_CALL, PATH, INTERFACE) or message.member != member or not matches(expected, found, self.captured):
            raise Mismatch(f"expected {member} {json.dumps(expected)}, found {message.member} {json.dumps(found, default=repr)}")
        self.last = message

    def do_reply(self, signature="", *body):
        values = json.loads(" ".join(body)) if body else []
        values = [variants(value) if isinstance(value, dict) else value for value in values]
        self.send(_wire.Message(_wire.METHOD_RETURN, reply_to=self.last.serial, signature=signature, body=values))

    def do_state(self, text):
        """A reply with a descriptor of a memfd that has this text."""
        descriptor = os.memfd_create("state")
        os.write(descriptor, text.encode())
        reply = _wire.Message(_wire.METHOD_RETURN, reply_to=self.last.serial, signature="h", body=[0])
        self.send(reply, [descriptor])
        os.close(descriptor)

    def do_error(self, name, *sentence):
        error = _wire.Message(_wire.ERROR, error=name, reply_to=self.last.serial, signature="s", body=[" ".join(sentence)])
        self.send(error)

    def do_ignore(self):
        """No reply to the last call."""

    def do_event(self, serial, kind, *details):
        body = [int(serial), kind, variants(json.loads(" ".join(details) or "{}"))]
        self.signal("Event", "tsa{sv}", body)

    def do_flood(self, first, last, kind, *details):
        """Events with these serials. The app may end the connection meanwhile."""
        try:
            for serial in range(int(first), int(last) + 1):
                self.do_event(serial, kind, *details)
        except (BrokenPipeError, ConnectionResetError):
            self.connection.close()

    def do_signal(self, member, signature, *body):
        self.signal(member, signature, json.loads(" ".join(body)))

    def do_bytes(self, digits):
        self.connection.sendall(bytes.fromhex(digits))

    def do_disconnect(self):
        self.connection.close()

    def do_ended(self):
        """The app closes the connection, and has sent nothing else."""
        self.readable(self.connection, "the end of the connection")
        try:
            rest = self.connection.recv(1)
        except ConnectionResetError:
            rest = b""
        if rest or self.messages:
            raise Mismatch("expected the end of the connection, found a message")
        self.connection.close()

    def do_order(self, order):
        self.order = {"little": "<", "big": ">"}[order]

    def do_pieces(self, size):
        """From now on messages are sent in pieces of this size."""
        self.piece = int(size) or None

    def do_pause(self, seconds):
        """A slow daemon."""
        time.sleep(float(seconds))

    def do_exit(self, status):
        try:
            found = self.process.wait(STEP_SECONDS)
        except subprocess.TimeoutExpired:
            raise Mismatch("the process does not exit") from None
        if found != int(status):
            raise Mismatch(f"expected exit status {status}, found {found}")

    def do_terminate(self):
        self.process.terminate()

    def do_kill(self, name):
        """A signal for the process."""
        self.process.send_signal(signal.Signals["SIG" + name])

    # ----

    def start(self, **options):
        if self.process is None:
            environment = {key: value for key, value in os.environ.items() if not key.startswith(("GREENROOM_", "NOTIFY_"))}
            self.process = subprocess.Popen(self.command, env=environment | self.environment, **options)

    def readable(self, connection, what):
        if not select.select([connection], [], [], STEP_SECONDS)[0]:
            raise Mismatch(f"expected {what} within {STEP_SECONDS:.0f}s")

    def authenticate(self, connection):
        """SASL EXTERNAL, as a client sends it: line by line, or all at once."""
        data, lines = b"", []
        while not lines or lines[-1] != "BEGIN":
            while b"\r\n" not in data:
                self.readable(connection, "a line of the authentication")
                byte = connection.recv(1)
                if not byte:
                    raise Mismatch("the connection ended in the authentication")
                data += byte
            line, _, data = data.partition(b"\r\n")
            lines.append(line.decode().lstrip("\0"))
            answer = self.answer(lines)
            if answer:
                connection.sendall(answer.encode() + b"\r\n")

    @staticmethod
    def answer(lines):
        user = str(os.geteuid()).encode().hex()
        line = lines[-1]
        if line == "AUTH EXTERNAL":
            return "DATA"
        if line in (f"AUTH EXTERNAL {user}", f"DATA {user}", "DATA"):
            return "OK 0123456789abcdef0123456789abcdef"
        if line == "NEGOTIATE_UNIX_FD":
            return "AGREE_UNIX_FD"
        if line == "BEGIN":
            return ""
        raise Mismatch(f"unexpected line of the authentication: {line}")

    def next_message(self):
        while not self.messages:
            self.readable(self.connection, "a message")
            data, descriptors, _, _ = socket.recv_fds(self.connection, 65536, 16)
            if not data:
                raise Mismatch("expected a message, found the end of the connection")
            self.messages += self.decoder.feed(data, descriptors)
        return self.messages.pop(0)

    @staticmethod
    def content(message):
        """What the sealed memfd of a message has."""
        descriptor = message.descriptors[0]
        seals = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
        if not seals & fcntl.F_SEAL_WRITE:
            raise Mismatch("the memfd is not sealed")
        try:
            return os.pread(descriptor, 1 << 20, 0).decode()
        finally:
            os.close(descriptor)

    def signal(self, member, signature, body):
        self.send(_wire.Message(_wire.SIGNAL, path=PATH, interface=INTERFACE, member=member, signature=signature, body=body))

    def receiver(self, _message):
        """The connection that a message is sent on."""
        return self.connection

    def send(self, message, descriptors=()):
        connection = self.receiver(message)
        self.serial += 1
        message.serial = self.serial
        message.descriptors = list(descriptors)
        data = _wire.encode(message, self.order)
        step = self.piece or len(data)
        first = socket.send_fds(connection, [data[:step]], descriptors) if descriptors else 0
        for start in range(first, len(data), step):
            connection.sendall(data[start : start + step])

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for end in (self.connection, self.listener):
            if end:
                end.close()


class Peer:
    """One of several connections."""

    def __init__(self, connection):
        self.connection = connection
        self.decoder = _wire.Decoder()
        # Whether this is the connection for events; None: it has called nothing yet.
        self.gets_events = None
        self.has_ended = False


def is_for_events(member, body):
    """Whether only the connection for events makes this call. `app task` attaches as well, for one kind."""
    return member == "Ready" or (member == "Attach" and body[0].get("handles") != ["tasksExpiring"])


class SeveralPlayer(Player):
    """Plays one transcript for an app that has a connection for events, and another one for each call.

    The calls of the two groups are compared in the order of the transcript, but not with each other's.
    """

    def __init__(self, folder, command):
        super().__init__(folder, command)
        self.peers = []
        # The calls that are not expected yet: of the connection for events, and of all others.
        self.calls = {True: collections.deque(), False: collections.deque()}
        self.events = self.caller = None
        self.expects_events = False

    def do_connect(self):
        """Starts the process. Connections are accepted at any time. Its children are in its group."""
        self.start(process_group=0)

    def do_expect(self, member, *arguments):
        body = json.loads(" ".join(arguments)) if arguments else []
        self.expects_events = is_for_events(member, body)
        super().do_expect(member, *arguments)

    def do_disconnect(self):
        """All connections end, as with the end of the daemon."""
        for peer in self.peers:
            peer.connection.close()
        self.peers.clear()
        for calls in self.calls.values():
            calls.clear()

    def do_ended(self):
        """The app closes the connection for events, and has called nothing else there. It may have connected again since."""
        self.serve(lambda: self.events.has_ended, "the end of the connection")
        self.expect_no_call(self.events)

    def do_exit(self, status):
        ended = os.pidfd_open(self.process.pid)
        try:
            self.serve(lambda: select.select([ended], [], [], 0)[0], "the end of the process", ended)
            while self.serve_once(0):
                pass
        finally:
            os.close(ended)
        super().do_exit(status)
        self.expect_no_call()

    def expect_no_call(self, of=None):
        """None of a connection is left, or of any connection."""
        for calls in self.calls.values():
            for peer, message in calls:
                if of in (None, peer):
                    raise Mismatch(f"expected no other call, found {message.member}")

    def next_message(self):
        calls = self.calls[self.expects_events]
        self.serve(lambda: calls, "a message")
        self.caller, message = calls.popleft()
        if message.member == "Attach" and self.expects_events:
            if self.events in self.peers and not self.events.has_ended:
                raise Mismatch("two connections attach for events")
            self.events = self.caller
            self.connection = self.caller.connection
        return message

    def receiver(self, message):
        return self.caller.connection if message.reply_to else self.connection

    def serve(self, is_done, what, other=None):
        """Accepts connections and reads their calls until `is_done`."""
        limit = time.monotonic() + STEP_SECONDS
        while not is_done():
            if not self.serve_once(limit - time.monotonic(), other):
                raise Mismatch(f"expected {what} within {STEP_SECONDS:.0f}s")

    def serve_once(self, seconds, other=None):
        """Returns whether a connection, or the other descriptor, was readable within this time."""
        peers = {peer.connection: peer for peer in self.peers if not peer.has_ended}
        waited = [*peers, self.listener] + ([] if other is None else [other])
        readable = select.select(waited, [], [], max(0, seconds))[0]
        for source in readable:
            if source is self.listener:
                connection = self.listener.accept()[0]
                self.authenticate(connection)
                self.peers.append(Peer(connection))
            elif source in peers:
                self.read(peers[source])
        return bool(readable)

    def read(self, peer):
        try:
            data, descriptors, _, _ = socket.recv_fds(peer.connection, 65536, 16)
        except ConnectionResetError:
            data, descriptors = b"", []
        if not data:
            peer.has_ended = True
            peer.connection.close()
        for message in peer.decoder.feed(data, descriptors) if data else []:
            if message.interface == "org.freedesktop.DBus" and message.member == "Hello":
                # A client of libsystemd. It does not wait for the reply.
                self.caller = peer
                # It may have ended already, without a call.
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self.send(_wire.Message(_wire.METHOD_RETURN, reply_to=message.serial, signature="s", body=[":1.1"]))
                continue
            if peer.gets_events is None:
                peer.gets_events = message.member == "Attach" and is_for_events(message.member, message.body)
            self.calls[peer.gets_events].append((peer, message))

    def close(self):
        if self.process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        super().close()
        for peer in self.peers:
            peer.connection.close()


def steps(path):
    """The steps of a transcript: (line number, name, arguments). An expected call without an answer below it is answered."""
    found = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            words = line.split()
            if words and not words[0].startswith("#"):
                found.append((number, words[0], words[1:]))
    result = []
    for step, following in zip(found, [*found[1:], (0, "", [])]):
        result.append(step)
        if step[1] == "expect" and following[1] not in ("reply", "state", "error", "ignore", "pause", "disconnect"):
            result.append((step[0], "reply", []))
    return result


def play(path, command, kind=Player):
    with tempfile.TemporaryDirectory(prefix="greenroom-contract") as folder:
        player = kind(folder, command)
        number = 0
        try:
            for number, name, arguments in steps(path):
                getattr(player, "do_" + name)(*arguments)
        except (Mismatch, OSError, _wire.WireError) as error:
            print(f"{path}:{number}: {error}", file=sys.stderr)
            return False
        finally:
            player.close()
    return True


def main(arguments):
    if "--" not in arguments:
        print(__doc__, file=sys.stderr)
        return 2
    split = arguments.index("--")
    paths, command = arguments[:split], arguments[split + 1 :]
    kind = Player
    if paths[:1] == ["--several-connections"]:
        kind, paths = SeveralPlayer, paths[1:]
    results = [play(path, command, kind) for path in paths]
    print(f"{sum(results)} of {len(results)} transcripts: {shlex.join(command)}")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
