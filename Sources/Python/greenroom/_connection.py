"""The connection of a process to greenroomd: one thread that sends calls, receives events, and reconnects.

The thread owns the socket. Other threads leave calls in a bounded queue and wait for a Future, so a call takes the same path from
synchronous programs, worker threads and asyncio. A call whose reply was lost with the connection is sent again: every method of
the interface may be repeated.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import logging
import os
import select
import socket
import struct
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _wire
from ._errors import Error, Refused

PATH = "/org/greenroom/self"
INTERFACE = "org.greenroom.Self1"
# Calls that wait for the daemon, and their size. More are refused at once.
MAX_CALLS = 1000
MAX_BYTES = 4 << 20
# Never refused: greenroomd waits for them, and the number of events, tasks and other calls limits theirs.
UNLIMITED = frozenset({"Answer", "EndTask", "Ready", "Stopping"})
# The texts of one call. greenroomd ends connections that send messages of more than 64 KiB.
MAX_TEXT = 32 << 10
# Events that the program has not handled. The daemon has at most 256 that wait; the rest are repeated after a reconnect.
MAX_EVENTS = 4096
# The pauses between attempts to connect, in seconds. A daemon that is replaced is back within a few of the first. A new daemon
# waits 3 seconds for the processes that were connected to the one before, so the last is shorter than that.
FIRST_PAUSE, LAST_PAUSE = 0.05, 1.0
# How long a daemon may take to accept a connection, in seconds.
HANDSHAKE_SECONDS = 5.0

log = logging.getLogger("greenroom")


@dataclass(eq=False)
class Reply:
    """The values of a reply. The descriptors belong to the receiver."""

    body: list[Any]
    descriptors: list[int]


@dataclass(eq=False)
class Call:
    """A call, as bytes whose serial is set when they are sent. Its descriptors are closed when it is done."""

    member: str
    data: bytearray
    descriptors: list[int]
    future: concurrent.futures.Future[Reply] = field(default_factory=concurrent.futures.Future)


Attach = Callable[[], dict[str, _wire.Variant] | None]
Receiver = Callable[[int, str, dict[str, Any]], None]


class Connection:
    """Keeps a connection to an address. The callbacks are called on its thread.

    `attach` returns the options of Attach, or None if the process does not take part yet. `receive` gets each event. `backlog`
    returns the number of events that are not handled. `attached` gets the answer to Attach.
    """

    def __init__(
        self, address: str, attach: Attach, receive: Receiver, backlog: Callable[[], int],
        attached: Callable[[dict[str, Any]], None],
    ) -> None:
        self._names = _wire.socket_addresses(address)
        self._attach, self._receive, self._backlog, self._attached = attach, receive, backlog, attached
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._queue: deque[Call] = deque()
        self._open: dict[int, Call] = {}
        self._size = 0
        self._serial = 0
        self._closed = False
        self._options: dict[str, _wire.Variant] | None = None
        self._socket: socket.socket | None = None
        self._decoder = _wire.Decoder()
        self._pauses_end = threading.Event()
        self._wake_reader, self._wake_writer = socket.socketpair()
        for end in (self._wake_reader, self._wake_writer):
            end.setblocking(False)
        _connections.add(self)
        self._thread = threading.Thread(target=self._run, name="greenroom", daemon=True)
        self._thread.start()

    # ---- For all threads

    def call(
        self, member: str, signature: str = "", body: Sequence[Any] = (), descriptors: Sequence[int] = (), latest: bool = False
    ) -> concurrent.futures.Future[Reply]:
        """Queues a call. The descriptors are duplicated. With `latest` it takes the position of an earlier one in the queue.

        Raises Refused if too many calls wait, or a text is too long.
        """
        for length in (len(value.encode(errors="surrogatepass")) for value in body if isinstance(value, str)):
            if length > MAX_TEXT:
                sentence = f"{member}: the text has {length} bytes; expected at most {MAX_TEXT}."
                raise Refused("org.freedesktop.DBus.Error.LimitsExceeded", sentence)
        message = _wire.Message(_wire.METHOD_CALL, 1, 0, PATH, INTERFACE, member, signature=signature, body=list(body))
        message.descriptors = [os.dup(descriptor) for descriptor in descriptors]
        try:
            call = Call(member, bytearray(_wire.encode(message)), message.descriptors)
            self._enqueue(call, latest)
        except BaseException:
            _wire.close_all(message.descriptors)
            raise
        self._wake()
        return call.future

    def _enqueue(self, call: Call, latest: bool) -> None:
        with self._lock:
            if self._closed:
                raise Error("the connection is closed")
            for number, other in enumerate(self._queue if latest else ()):
                if other.member == call.member:
                    self._size += len(call.data) - len(other.data)
                    self._queue[number] = call
                    return
            is_full = len(self._queue) + len(self._open) >= MAX_CALLS or self._size + len(call.data) > MAX_BYTES
            if is_full and call.member not in UNLIMITED:
                raise Refused("org.freedesktop.DBus.Error.LimitsExceeded", f"{call.member}: too many calls wait for greenroomd")
            self._queue.append(call)
            self._size += len(call.data)

    def reattach(self) -> None:
        """Sends Attach again, because the process now takes part or handles other events."""
        options = self._attach()
        if options is not None:
            self._front(options)

    def flush(self, timeout: float) -> None:
        """Waits until every queued call has its reply, for `timeout` seconds at most."""
        with self._idle:
            self._idle.wait_for(lambda: self._closed or not (self._queue or self._open), timeout)

    def close(self) -> None:
        """Ends the connection and its thread. Calls without a reply fail."""
        with self._lock:
            self._closed = True
        self._pauses_end.set()
        self._wake()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _wake(self) -> None:
        # A full socket wakes the thread as well; a closed one has no thread to wake.
        with contextlib.suppress(OSError):
            self._wake_writer.send(b"\0")

    def forked(self) -> None:
        """Called in a child process: it has no thread, and must not use its parent's connection."""
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._closed = True
        self._queue.clear()
        for end in (self._socket, self._wake_reader, self._wake_writer):
            if end is not None:
                end.close()

    # ---- The thread

    def _run(self) -> None:
        pause = FIRST_PAUSE
        failed = ""
        while not self._closed:
            try:
                self._socket = self._connect()
                self._socket.setblocking(False)
                if failed:
                    log.info("connected to greenroomd again")
                failed = ""
                self._prepare()
                started = time.monotonic()
                try:
                    self._serve(self._socket)
                finally:
                    # A connection that ends at once is not tried in a loop without pauses.
                    pause = FIRST_PAUSE if time.monotonic() - started > LAST_PAUSE else pause
            except (OSError, _wire.WireError) as error:
                if not failed and not self._closed:
                    failed = str(error)
                    log.warning("no connection to greenroomd (%s); reconnecting", failed)
            self._disconnect()
            while not self._closed:
                self._pauses_end.wait(pause)
                pause = min(1.5 * pause, LAST_PAUSE)
                if self._backlog() < MAX_EVENTS // 2:
                    break
        self._fail_all()
        self._wake_reader.close()
        self._wake_writer.close()

    def _connect(self) -> socket.socket:
        error: OSError | None = None
        for name in self._names:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
            try:
                connection.settimeout(HANDSHAKE_SECONDS)
                connection.connect(name)
                authenticate(connection)
                return connection
            except OSError as problem:
                connection.close()
                error = problem
            except BaseException:
                connection.close()
                raise
        assert error is not None
        raise error

    def _prepare(self) -> None:
        """Before anything else a new connection attaches; then it repeats the calls whose replies are missing."""
        options = self._attach()
        with self._lock:
            calls = list(self._open.values())
            self._open.clear()
            for call in reversed(calls):
                if call.member == "Attach":
                    self._size -= len(call.data)
                else:
                    self._queue.appendleft(call)
            self._options = None
        if options is not None:
            self._front(options)

    def _attach_call(self, options: dict[str, _wire.Variant]) -> Call:
        message = _wire.Message(_wire.METHOD_CALL, 1, 0, PATH, INTERFACE, "Attach", signature="a{sv}", body=[options])
        call = Call("Attach", bytearray(_wire.encode(message)), [])
        call.future.add_done_callback(self._attach_done)
        return call

    def _attach_done(self, future: concurrent.futures.Future[Reply]) -> None:
        if not future.cancelled() and future.exception() is None:
            body = future.result().body
            self._attached(body[0] if body and isinstance(body[0], dict) else {})
        elif not future.cancelled():
            log.warning("greenroomd does not accept this process: %s", future.exception())

    def _front(self, options: dict[str, _wire.Variant]) -> None:
        """Queues Attach before all other calls, unless this connection has sent the same."""
        call = self._attach_call(options)
        with self._lock:
            if self._options == options:
                return
            self._options = options
            for other in [other for other in self._queue if other.member == "Attach"]:
                self._queue.remove(other)
                self._size -= len(other.data)
            self._queue.appendleft(call)
            self._size += len(call.data)
        self._wake()

    def _serve(self, connection: socket.socket) -> None:
        poll = select.poll()
        poll.register(self._wake_reader, select.POLLIN)
        unsent = memoryview(b"")
        while not self._closed:
            with contextlib.suppress(BlockingIOError):
                while not self._closed:
                    if not unsent:
                        unsent = self._send_next(connection)
                        if not unsent:
                            break
                    unsent = unsent[connection.send(unsent) :]
            waiting = bool(unsent) or bool(self._queue)
            poll.register(connection, select.POLLIN | (select.POLLOUT if waiting else 0))
            for descriptor, _ in poll.poll():
                if descriptor == self._wake_reader.fileno():
                    with contextlib.suppress(BlockingIOError):
                        self._wake_reader.recv(4096)
                else:
                    self._read(connection)

    def _send_next(self, connection: socket.socket) -> memoryview:
        """Begins to send the next call, and returns the rest of it. Its descriptors go with its first bytes.

        Raises BlockingIOError if the socket accepts nothing; the call then stays in the queue.
        """
        with self._lock:
            while self._queue and self._queue[0].future.cancelled():
                self._finish(self._queue.popleft())
            if not self._queue:
                return memoryview(b"")
            call = self._queue[0]
            self._serial = self._serial % 0xFFFF_FFFF + 1
            struct.pack_into("<I", call.data, 8, self._serial)
            sent = socket.send_fds(connection, [call.data], call.descriptors) if call.descriptors else connection.send(call.data)
            self._open[self._serial] = self._queue.popleft()
            return memoryview(bytes(call.data))[sent:]

    def _read(self, connection: socket.socket) -> None:
        try:
            data, descriptors, flags, _ = socket.recv_fds(
                connection, 65536, _wire.MAX_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
            )
        except BlockingIOError:
            return
        if flags & socket.MSG_CTRUNC:
            _wire.close_all(descriptors)
            raise _wire.WireError("descriptors were lost")
        if not data:
            raise ConnectionResetError("closed by greenroomd")
        for message in self._decoder.feed(data, descriptors):
            self._handle(message)

    def _handle(self, message: _wire.Message) -> None:
        if message.type in (_wire.METHOD_RETURN, _wire.ERROR):
            with self._lock:
                call = self._open.pop(message.reply_to, None)
            if call is None:
                _wire.close_all(message.descriptors)
            elif message.type == _wire.ERROR:
                _wire.close_all(message.descriptors)
                sentence = message.body[0] if message.body and isinstance(message.body[0], str) else message.error
                self._complete(call, Refused(message.error, sentence))
            else:
                self._complete(call, Reply(message.body, message.descriptors))
            return
        _wire.close_all(message.descriptors)
        if message.type == _wire.SIGNAL and (message.interface, message.member) == (INTERFACE, "Event"):
            if message.signature != "tsa{sv}":
                log.warning("an event with the signature %r is ignored; expected 'tsa{sv}'", message.signature)
                return
            if self._backlog() >= MAX_EVENTS:
                raise _wire.WireError(f"{MAX_EVENTS} events are not handled yet")
            self._receive(*message.body)

    def _complete(self, call: Call, outcome: Reply | Error) -> None:
        with self._lock:
            self._finish(call)
        try:
            if isinstance(outcome, Reply):
                call.future.set_result(outcome)
            else:
                call.future.set_exception(outcome)
        except concurrent.futures.InvalidStateError:
            # The caller no longer waits.
            if isinstance(outcome, Reply):
                _wire.close_all(outcome.descriptors)

    def _finish(self, call: Call) -> None:
        self._size -= len(call.data)
        _wire.close_all(call.descriptors)
        call.descriptors = []
        self._idle.notify_all()

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._decoder.close()
        self._decoder = _wire.Decoder()

    def _fail_all(self) -> None:
        with self._lock:
            calls = [*self._open.values(), *self._queue]
            self._open.clear()
            self._queue.clear()
        for call in calls:
            self._complete(call, Error("the connection is closed"))


def authenticate(connection: socket.socket) -> None:
    """Authenticates with SASL EXTERNAL, and agrees to pass descriptors. Reads no byte of the first message.

    Raises OSError if greenroomd refuses or does not answer.
    """
    user = str(os.geteuid()).encode().hex()
    connection.sendall(f"\0AUTH EXTERNAL {user}\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n".encode())
    for expected in (b"OK", b"AGREE_UNIX_FD"):
        line = b""
        while not line.endswith(b"\r\n"):
            byte = connection.recv(1)
            if not byte or len(line) >= 512:
                raise ConnectionRefusedError("greenroomd ended the authentication")
            line += byte
        if line.split()[:1] != [expected]:
            raise ConnectionRefusedError(f"greenroomd refused the authentication: {line.decode(errors='replace').strip()}")


_connections: weakref.WeakSet[Connection] = weakref.WeakSet()


def _after_fork() -> None:
    for connection in list(_connections):
        connection.forked()


os.register_at_fork(after_in_child=_after_fork)
