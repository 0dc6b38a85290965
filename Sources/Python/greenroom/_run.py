"""What `App.run()` needs: its result, the signals that end the app, and what handlers return."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from typing import Any

from ._events import Result

log = logging.getLogger("greenroom")


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
