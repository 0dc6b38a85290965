"""What `App.run()` needs: its result, the events that have arrived, the signals that end the app, and what handlers return."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import queue
import select
import signal
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from ._events import Event, Result

log = logging.getLogger("greenroom")


class Done:
    """The result of a `run()` that has already returned."""

    def __await__(self) -> Any:
        return iter(())


class Arrived:
    """The events that have arrived, in their order, for one thread that waits for them.

    It waits for a pipe, and not for a lock: a signal that comes immediately before the main thread waits for a lock, or that the
    kernel gives to another thread, has its handler called only when something else ends that wait. Python's own handler of a
    signal writes into the pipe (`Signals`), so it ends the wait whenever it comes.
    """

    def __init__(self) -> None:
        self._events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._reader, self.wakeup = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for descriptor in (self._reader, self.wakeup):
            weakref.finalize(self, os.close, descriptor)

    def count(self) -> int:
        return self._events.qsize()

    def put(self, event: Event | None) -> None:
        self._events.put(event)

    def wake(self) -> None:
        """Ends the wait of another thread, or its next one."""
        # A full pipe ends it, too.
        with contextlib.suppress(BlockingIOError):
            os.write(self.wakeup, b"\0")

    def get(self, timeout: float | None = 0) -> Event | None:
        """The next event. Raises queue.Empty if none arrives within `timeout` seconds; None: without a limit."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        while True:
            with contextlib.suppress(queue.Empty):
                return self._events.get_nowait()
            remaining = end - time.monotonic()
            if remaining <= 0:
                raise queue.Empty
            # Milliseconds, as a C int.
            poll.poll(None if remaining == math.inf else math.ceil(min(remaining, 1e6) * 1000))
            with contextlib.suppress(BlockingIOError):
                os.read(self._reader, 1 << 16)


class Signals:
    """SIGTERM and SIGINT end the app while it dispatches, unless the program has handlers of its own.

    Signals also write into `wakeup`, unless the program has a descriptor of its own for them: its loop waits for that one.
    """

    def __init__(self, handler: Callable[[int, object], None], wakeup: int) -> None:
        self._handler = handler
        self._wakeup = wakeup
        self._earlier: dict[int, Any] = {}
        self._has_wakeup = False

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                    self._earlier[number] = signal.signal(number, self._handler)
            if (earlier := signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)) == -1:
                self._has_wakeup = True
            else:
                signal.set_wakeup_fd(earlier)

    def __exit__(self, *_: object) -> None:
        if self._has_wakeup:
            signal.set_wakeup_fd(-1)
            self._has_wakeup = False
        for number, earlier in self._earlier.items():
            signal.signal(number, earlier)


def save_taken(save: Callable[..., None], results: list[Any], *scene: str) -> None:
    """Saves what the handlers of `on_snapshot` or, for a scene, `on_scene_snapshot` have returned."""
    for result in results:
        if result is None or result is Result.FAILED:
            continue
        try:
            image, type = result if isinstance(result, tuple) else (result, "image/png")
            save(image, type, *scene)
        except Exception:
            log.exception("the snapshot is not saved")
