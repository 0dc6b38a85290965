"""What `App.run()` needs: its result, and the signals that end the app."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any


class Done:
    """The result of a `run()` that has already returned."""

    def __await__(self) -> Any:
        return iter(())


class Signals:
    """SIGTERM and SIGINT end the app while it dispatches, unless the program has handlers of its own."""

    def __init__(self, handler: Callable[[int, object], None]) -> None:
        self._handler = handler
        self._earlier: dict[int, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                    self._earlier[number] = signal.signal(number, self._handler)

    def __exit__(self, *_: object) -> None:
        for number, earlier in self._earlier.items():
            signal.signal(number, earlier)
