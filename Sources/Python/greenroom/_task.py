"""Background tasks and modes."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from ._errors import Error, TaskExpired

if TYPE_CHECKING:
    from ._app import App


# Reports of progress that follow one another faster are left out, in seconds.
PROGRESS_SECONDS = 0.1


class Task:
    """Work during which the app is not suspended. `App.task()` makes it; `with` or `async with` begins and ends it."""

    def __init__(self, app: App, name: str) -> None:
        #: The name that `greenroomctl status` shows.
        self.name = name
        self._app = app
        # The same token again is the same task, so a call that is repeated begins no second one.
        self._token = uuid.uuid4().hex
        self._expiring = threading.Event()
        self._open = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._work: asyncio.Task[object] | None = None
        self._cancelled = False
        # The title and the time of the last report.
        self._reported: tuple[str, float] | None = None

    @property
    def expiring(self) -> bool:
        """Whether the background time ends: finish now, or the app is killed (5 seconds later by default)."""
        return self._expiring.is_set()

    def wait_expiring(self, timeout: float | None = None) -> bool:
        """Waits until the background time ends. Returns `expiring`."""
        return self._expiring.wait(timeout)

    @property
    def remaining(self) -> float:
        """The background time that is left in seconds, of all tasks together; infinite in the foreground."""
        return self._app.remaining_time

    def begin(self) -> None:
        """Begins the task. Raises Refused if the app has no background time."""
        if not self._app.in_greenroom:
            return
        self._prepare()
        try:
            self._app._call("BeginTask", "ss", [self.name, self._token])
        except BaseException:
            # A call without a reply may have arrived.
            self.end()
            raise

    def progress(self, done: int, total: int, title: str = "") -> None:
        """Reports how far the task is, for the user: `total` is 0 if it is not known, an empty `title` keeps the last one.

        A task with a title that began in the foreground may continue in the background for as long as `done` grows. It may be called
        as often as the work advances: what comes within 100 ms of the last report is left out, except for the end.
        """
        now = time.monotonic()
        is_end = total > 0 and done >= total
        if self._reported is not None and not is_end:
            last_title, last_time = self._reported
            if title == last_title and now - last_time < PROGRESS_SECONDS:
                return
        if self._open:
            self._reported = title, now
            self._app._send("SetTaskProgress", "stts", [self.name, done, total, title])

    def end(self) -> None:
        """Ends the task. It is no error to end it twice."""
        if self._open:
            self._open = False
            self._app._tasks.pop(self._token, None)
            self._app._send("EndTask", "s", [self._token])

    def _prepare(self) -> None:
        if self._open:
            raise Error(f"the task {self.name!r} is open already")
        self._open = True
        self._reported = None
        self._expiring.clear()
        self._app._tasks[self._token] = self

    def _expire(self) -> None:
        """Called on the thread of the connection."""
        self._expiring.set()
        if self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._cancel)
            except RuntimeError:
                # The loop has ended, and the work with it.
                return

    def _cancel(self) -> None:
        # Once: the connection's thread and __aenter__ may both see the end. A late call may find the task begun again.
        if self._open and self._work is not None and self.expiring and not self._cancelled:
            self._cancelled = True
            self._work.cancel()

    def __enter__(self) -> Task:
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    async def __aenter__(self) -> Task:
        if not self._app.in_greenroom:
            return self
        self._loop = asyncio.get_running_loop()
        self._prepare()
        try:
            call = self._app._send("BeginTask", "ss", [self.name, self._token])
            await asyncio.wrap_future(call)
        except BaseException:
            self.end()
            raise
        self._work = asyncio.current_task()
        if self.expiring:
            self._cancel()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        self._loop = None
        work, self._work = self._work, None
        if self._cancelled and work is not None:
            self._cancelled = False
            # Another request to cancel the work has priority, as in asyncio.timeout().
            if work.uncancel() <= 0 and kind is asyncio.CancelledError:
                raise TaskExpired(f"the background time of the task {self.name!r} ends") from error


class Modes:
    """The background modes that are on. Several blocks of one may overlap: it begins with the first and ends with the last."""

    def __init__(self, app: App) -> None:
        self._app = app
        # How many blocks are open, by mode.
        self._open: dict[str, int] = {}
        self._lock = threading.Lock()

    @contextmanager
    def on(self, name: str) -> Iterator[None]:
        with self._lock:
            if not self._open.get(name) and self._app.in_greenroom:
                self._app._call("BeginMode", "s", [name])
            self._open[name] = self._open.get(name, 0) + 1
        try:
            yield
        finally:
            with self._lock:
                self._open[name] -= 1
                if not self._open[name] and self._app.in_greenroom:
                    self._app._send("EndMode", "s", [name])
