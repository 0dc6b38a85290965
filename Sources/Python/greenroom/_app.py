"""The app: its handlers, its tasks, its restoration state, and the loop that calls the handlers."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import inspect
import json
import logging
import math
import os
import queue
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any

from . import _storage, _wire
from ._connection import Connection, Reply
from ._errors import Error, Refused, Unavailable
from ._events import ANSWERED, ARGUMENTS, WAKES, Event, Launch, Result, combined, seconds, with_fewer_arguments
from ._handlers import Handler, Handlers
from ._run import Arrived, Done, Signals, save_taken
from ._task import Modes, Task

VERSION = "0.2.0"
# How long a call waits for greenroomd, in seconds. A daemon that is replaced answers within it.
CALL_SECONDS = 10.0
# How long the end of the program waits for what it has sent, in seconds.
FLUSH_SECONDS = 1.0

log = logging.getLogger("greenroom")


class App(Handlers):
    """An app that takes part in its lifecycle.

    Register handlers, restore the state, then call `run()`. Handlers are called one after the other on the thread of `run()`, or
    in its event loop if there is one; with asyncio, pushes and fetches are handled beside the others. A handler may take fewer
    arguments than it is offered. If a handler raises, the error is logged, the event is answered, and a push has failed.

    Without Greenroom the same program runs: tasks do nothing, and the state is a file in STATE_DIRECTORY.
    """

    def __init__(self) -> None:
        #: How and why this process was launched.
        self.launch: Launch = Launch.from_environment()
        #: What the app described with `summary()` before its last end. Known when `run()` or `start()` has connected.
        self.last_summary: str | None = None
        self._address = os.environ.get("GREENROOM_BUS_ADDRESS", "")
        self._process = os.getpid()
        self._handlers: dict[str, list[Callable[..., Any]]] = {}
        self._connection: Connection | None = None
        self._lock = threading.RLock()
        self._started = False
        self._ended = False
        self._left = False
        self._events = Arrived()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._arrived: asyncio.Event | None = None
        self._wakes: set[asyncio.Task[None]] = set()
        self._tasks: dict[str, Task] = {}
        self._modes = Modes(self)
        # The serial of the last event that was received: what a new connection need not repeat. 0: none, not even a launch.
        self._last = 0

    def _register(self, kind: str, handler: Handler) -> Handler:
        self._handlers.setdefault(kind, []).append(with_fewer_arguments(handler, len(ARGUMENTS[kind])))
        if self._started and self._connection is not None:
            self._connection.reattach()
        return handler

    # ---- Running

    @property
    def in_greenroom(self) -> bool:
        """Whether greenroomd has launched this process and it is not a fork of an app."""
        return bool(self._address) and os.getpid() == self._process

    def start(self) -> None:
        """Finishes launching: connects, and reports that the app is ready. `run()` and `dispatch()` do it first."""
        if self._started:
            return
        self._started = True
        if connection := self._connected():
            connection.reattach()
            connection.call("Ready")
        else:
            _storage.notify("READY=1", unless=bool(self._address))
            self._put(Event(0, "didBecomeActive", {"cause": "launch"}))

    def run(self) -> Awaitable[None]:
        """Calls the handlers until the app has to end, or `stop()` is called.

        In an event loop it is awaited: `await app.run()`. Elsewhere it returns when the app has to end; if a handler is a
        coroutine function, it runs an event loop meanwhile.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            return self.run_async()
        if any(inspect.iscoroutinefunction(inspect.unwrap(each)) for some in self._handlers.values() for each in some):
            asyncio.run(self.run_async())
        else:
            while self.dispatch(None):
                pass
        return Done()

    def dispatch(self, timeout: float | None = 0.0) -> bool:
        """Calls the handlers of the events that arrive within `timeout` seconds; for programs with a loop of their own.

        Returns whether the app continues to run: False after `on_terminate`.
        """
        with Signals(self._signaled, self._events.wakeup):
            self.start()
            end = math.inf if timeout is None else time.monotonic() + timeout
            while not self._ended:
                remaining = end - time.monotonic()
                try:
                    event = self._events.get(None if remaining == math.inf else remaining)
                except queue.Empty:
                    return True
                if event is not None and not self._ended:
                    self._finish(event, [self._called(handler, event) for handler in self._handlers_of(event)])
        self._leave()
        return False

    async def run_async(self) -> None:
        """Calls the handlers in the running event loop until the app has to end, or `stop()` is called."""
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        handled = [signal.SIGTERM, signal.SIGINT] if threading.current_thread() is threading.main_thread() else []
        for number in handled:
            self._loop.add_signal_handler(number, self._signaled, number)
        try:
            self.start()
            self._arrived.set()
            while not self._ended:
                await self._arrived.wait()
                self._arrived.clear()
                await self._handle_arrived()
            for wake in self._wakes:
                wake.cancel()
            await asyncio.get_running_loop().run_in_executor(None, self._leave)
        finally:
            for number in handled:
                self._loop.remove_signal_handler(number)
            self._loop = None

    async def _handle_arrived(self) -> None:
        while not self._ended:
            try:
                event = self._events.get()
            except queue.Empty:
                return
            if event is not None and event.kind in WAKES:
                wake = asyncio.ensure_future(self._handle_async(event))
                self._wakes.add(wake)
                wake.add_done_callback(self._wakes.discard)
            elif event is not None:
                await self._handle_async(event)

    async def _handle_async(self, event: Event) -> None:
        results = []
        for handler in self._handlers_of(event):
            result = self._called(handler, event)
            if inspect.isawaitable(result):
                try:
                    result = await result
                except Exception:
                    log.exception("the handler of %s failed", event.kind)
                    result = Result.FAILED
            results.append(result)
        self._finish(event, results)

    def stop(self) -> None:
        """Ends `run()`, and tells Greenroom that the app ends by itself."""
        self._send("Stopping", latest=True)
        _storage.notify("STOPPING=1", unless=bool(self._address))
        self._ended = True
        self._put(None)

    def _handlers_of(self, event: Event) -> list[Callable[..., Any]]:
        return self._handlers.get(event.kind, [])

    @staticmethod
    def _called(handler: Callable[..., Any], event: Event) -> Any:
        try:
            return handler(*event.arguments())
        except Exception:
            log.exception("the handler of %s failed", event.kind)
            return Result.FAILED

    def _finish(self, event: Event, results: list[Any]) -> None:
        """Answers an event whose handlers have returned."""
        if event.kind == "willTerminate":
            self._ended = True
        if event.kind in ("takeSnapshot", "takeSceneSnapshot"):
            save_taken(self.save_snapshot, results, *event.arguments())
        if event.kind in ANSWERED and event.serial > 0:
            answer = {"result": _wire.Variant("s", combined(results))} if event.kind in WAKES else {}
            # The reply is not needed. NotOpen: another process of the app was first, or the answer is a repeated one.
            self._send("Answer", "ta{sv}", [event.serial, answer])

    def _leave(self) -> None:
        if self._connection is not None and not self._left:
            self._left = True
            self._connection.flush(FLUSH_SECONDS)

    def _signaled(self, number: int, _frame: object = None) -> None:
        name = signal.Signals(number).name
        self._put(Event(0, "willTerminate", {"reason": name}))

    def _put(self, event: Event | None) -> None:
        self._events.put(event)
        if (loop := self._loop) is None or self._arrived is None:
            self._events.wake()
        else:
            try:
                loop.call_soon_threadsafe(self._arrived.set)
            except RuntimeError:
                log.debug("the event loop is closed")

    # ---- The connection

    def _is_outside(self) -> bool:
        """Whether Greenroom did not launch this process. Raises Error in a child made by fork."""
        if self._address and not self.in_greenroom:
            raise Error("this is a child of the process that takes part")
        return not self._address

    def _connected(self) -> Connection | None:
        # Before the lock: in a child made by fork, a thread that does not exist there may hold it.
        if not self.in_greenroom:
            return None
        with self._lock:
            if self._connection is None:
                self._connection = Connection(
                    self._address, self._options, self._received, self._events.count, self._attached
                )
                atexit.register(self._leave)
            return self._connection

    def _options(self) -> dict[str, _wire.Variant] | None:
        if not self._started:
            return None
        # Events that are being handled are in memory, and their answers are repeated: only later ones have to be sent.
        with self._lock:
            serial = self._last
        # Tasks are cancelled when they expire, with or without a handler.
        handles = sorted({*self._handlers, "tasksExpiring"})
        return {
            "handles": _wire.Variant("as", handles), "serial": _wire.Variant("t", serial),
            "library": _wire.Variant("s", f"Python {VERSION}"),
        }

    def _attached(self, answer: dict[str, Any]) -> None:
        summary = answer.get("stateSummary")
        self.last_summary = summary if isinstance(summary, str) else None
        serial = answer.get("serial")
        with self._lock:
            self._last = max(self._last, serial if isinstance(serial, int) else 0)

    def _received(self, serial: int, kind: str, details: dict[str, Any]) -> None:
        with self._lock:
            # Events that are being handled, or whose answer is on its way, are not handled again.
            if serial <= self._last or kind not in ARGUMENTS:
                return
            self._last = serial
            expiring = [task for task in list(self._tasks.values()) if task.name in details.get("names", [])]
        if kind == "tasksExpiring":
            for task in expiring:
                task._expire()
        self._put(Event(serial, kind, details))

    def _send(
        self, member: str, signature: str = "", body: list[Any] | None = None, latest: bool = False
    ) -> concurrent.futures.Future[Reply]:
        """Sends a call, and does not wait for its reply."""
        if connection := self._connected():
            return connection.call(member, signature, body or [], latest=latest)
        future: concurrent.futures.Future[Reply] = concurrent.futures.Future()
        future.set_exception(Error("not in Greenroom"))
        return future

    def _call(self, member: str, signature: str = "", body: list[Any] | None = None, descriptor: int | None = None) -> Reply:
        """Sends a call and waits for its reply."""
        connection = self._connected()
        assert connection is not None
        descriptors = [] if descriptor is None else [descriptor]
        future = connection.call(member, signature, body or [], descriptors)
        try:
            return future.result(CALL_SECONDS)
        except TimeoutError:
            future.cancel()
            raise Unavailable(f"greenroomd did not answer {member} within {CALL_SECONDS:.0f}s") from None

    # ---- Tasks

    def task(self, name: str) -> Task:
        """A background task: the app is not suspended while it is open. Use it with `with` or `async with`.

        Raises Refused when it begins without background time. `async with` is cancelled when the background time ends, and
        raises TaskExpired; with `with`, look at `expiring`.
        """
        return Task(self, name)

    @property
    def remaining_time(self) -> float:
        """The background time in seconds: infinite in the foreground, and without Greenroom."""
        return seconds(self._call("RemainingTime").body) if self.in_greenroom else math.inf

    # ---- Modes

    def mode(self, name: str) -> AbstractContextManager[None]:
        """A background mode, for `with`: the app is not suspended while it is on.

        The manifest declares it (BackgroundModes=): "audio", "recording", "call", "location", "accessory" or "processing". Unlike a
        task it has no time limit. Several blocks of one mode may overlap. Raises Refused with the reason if it is refused.
        """
        return self._modes.on(name)

    # ---- Scenes

    def begin_scene(self, name: str, role: str = "window") -> None:
        """Begins a scene, or shows one that the app has. The role is window, external or panel.

        Each app begins with the scene "main". Raises Refused with the reason if the scene is refused.
        """
        if self.in_greenroom:
            self._call("BeginScene", "ss", [name, role])

    def end_scene(self, name: str) -> None:
        """Ends a scene."""
        if self.in_greenroom:
            self._call("EndScene", "s", [name])

    # ---- What the app says about itself

    def status(self, text: str) -> None:
        """Sets the text that `greenroomctl status` shows."""
        self._send("SetStatus", "s", [text], latest=True)
        _storage.notify("STATUS=" + " ".join(text.split()), unless=bool(self._address))

    def summary(self, text: str) -> None:
        """Describes the state of the app for its next process, which finds it as `last_summary`; at most 1 KiB."""
        if self.in_greenroom:
            self._call("SetStateSummary", "s", [text])

    def heartbeat(self) -> None:
        """Tells that the app is alive, for WatchdogSec=."""
        self._send("Heartbeat", latest=True)
        _storage.notify("WATCHDOG=1", unless=bool(self._address))

    def idle(self, idle: bool = True) -> None:
        """Hints that the app has nothing to do until something arrives."""
        self._send("SetIdle", "b", [idle], latest=True)

    # ---- Restoration

    def save(self, state: object, scene: str | None = None) -> None:
        """Saves the restoration state: any value that JSON can express, at most 1 MiB of it. With `scene` that of a scene, which is kept
        beside it until `end_scene()`.

        Raises Refused with the reason if it is not kept, and TypeError if JSON cannot express it.
        """
        self.save_bytes(json.dumps(state, ensure_ascii=False, separators=(",", ":")).encode(), scene)

    def save_bytes(self, state: bytes, scene: str | None = None) -> None:
        """Saves a restoration state that the app encodes itself, for `restore_bytes()`."""
        _storage.check_size("the restoration state", state, 1 << 20)
        if self._is_outside():
            _storage.save(state, scene)
        else:
            with _storage.sealed("state", state) as descriptor:
                if scene is None:
                    self._call("SaveState", "h", [0], descriptor)
                else:
                    self._call("SaveSceneState", "sh", [scene, 0], descriptor)

    def restore(self, default: Any = None, scene: str | None = None) -> Any:
        """Returns what `save()` saved in an earlier process of the app, or `default`. An app that does not want it does not ask."""
        state = self.restore_bytes(scene)
        try:
            return default if state is None else json.loads(state)
        except ValueError:
            log.warning("the restoration state is not JSON, and is ignored")
            return default

    def restore_bytes(self, scene: str | None = None) -> bytes | None:
        """Returns the restoration state, or that of a scene, as bytes, or None if there is none."""
        if self._is_outside():
            return _storage.load(scene)
        try:
            reply = self._call("GetState") if scene is None else self._call("GetSceneState", "s", [scene])
            return _storage.content(reply.descriptors)
        except Refused as error:
            if error.name.endswith(".NotFound"):
                return None
            raise

    def drop_state(self) -> None:
        """Removes the restoration state, so that the next process begins anew."""
        if self._is_outside():
            _storage.drop()
        else:
            self._call("DropState")

    def save_snapshot(self, image: bytes, type: str = "image/png", scene: str | None = None) -> None:
        """Saves a picture of the app, at most 8 MiB, or another form of what it shows (`type`: "image/jpeg", "text/plain" in UTF-8).
        With `scene` that of a scene, which is kept until `end_scene()`. It is shown while the app is not, by `greenroomctl snapshot`
        and by programs that switch between apps. `on_snapshot` and `on_scene_snapshot` say when one is wanted. Without Greenroom it
        does nothing.
        """
        _storage.check_size("the snapshot", image, 8 << 20)
        if self.in_greenroom:
            with _storage.sealed("snapshot", image) as descriptor:
                if scene is not None:
                    self._call("SaveSceneSnapshot", "ssh", [scene, type, 0], descriptor)
                elif type == "image/png":
                    self._call("SaveSnapshot", "h", [0], descriptor)
                else:
                    self._call("SaveSnapshotAs", "sh", [type, 0], descriptor)
