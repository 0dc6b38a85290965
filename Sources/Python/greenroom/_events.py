"""Events and launches, and how handlers get them and answer."""

from __future__ import annotations

import enum
import functools
import inspect
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from . import _storage

# The kinds of events, with the details that a handler gets as its arguments, and the value of one that is missing.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "openURL": {"url": "", "scene": "main"},
    "didBecomeActive": {"cause": "launch"},
    "willResignActive": {"cause": "background"},
    "willEnterForeground": {},
    "didEnterBackground": {"remainingSeconds": math.inf},
    "willTerminate": {"reason": "", "deadlineSeconds": math.inf},
    "memoryWarning": {"level": "warning"},
    "tasksExpiring": {"names": [], "remainingSeconds": 0.0},
    "push": {"payload": "", "id": 0},
    "wake": {"reason": "", "id": 0},
    "notification": {"kind": "", "payload": ""},
    "withdraw": {},
    "willSuspend": {},
    "didResume": {"suspendedSeconds": 0.0, "changed": []},
    "scene": {"scene": "main", "notice": "", "reason": ""},
    "didDiscardScenes": {"scenes": []},
    "takeSnapshot": {},
    "takeSceneSnapshot": {"scene": "main"},
}
ANSWERED = {"didEnterBackground", "willTerminate", "push", "wake", "takeSnapshot", "takeSceneSnapshot", "withdraw"}
# Wakes take up to 30 seconds. With asyncio they are handled beside other events, so that none of those waits.
WAKES = {"push", "wake"}


class Result(enum.StrEnum):
    """What a push or a fetch led to. A handler may also return True for NEW_DATA and False for NO_DATA."""

    NEW_DATA = "new-data"
    NO_DATA = "no-data"
    FAILED = "failed"


@dataclass(frozen=True)
class Launch:
    """How and why this process was launched."""

    #: The ID of the app, or "" without Greenroom.
    app: str
    #: Whether the app was launched into the foreground.
    foreground: bool
    #: user, url, push, fetch, socket, timer, accessory, location or relaunch.
    reason: str
    #: The URL of a launch with the reason `url`. It is also an event for `on_url`.
    url: str | None
    #: Whether this is the first launch of the app.
    first: bool
    #: How the previous process of the app ended: the keys of `greenroomctl --json receipt`. None if there was none.
    last_end: Mapping[str, Any] | None

    @staticmethod
    def from_environment(environment: Mapping[str, str] = os.environ) -> Launch:
        """Reads the variables that Greenroom sets. Without them it is a launch by the user into the foreground."""
        get = environment.get
        return Launch(
            app=get("GREENROOM_APP", ""), foreground=get("GREENROOM_LAUNCH_STATE", "inactive") == "inactive",
            reason=get("GREENROOM_LAUNCH_REASON", "user"), url=get("GREENROOM_LAUNCH_URL"),
            first=get("GREENROOM_FIRST_LAUNCH") == "1", last_end=_storage.receipt(get("GREENROOM_LAST_RECEIPT")),
        )


@dataclass(frozen=True)
class Event:
    serial: int
    kind: str
    details: Mapping[str, Any]

    def arguments(self) -> list[Any]:
        """The arguments of a handler. A detail that is missing, or has another type, has its default value."""
        values = []
        for name, default in ARGUMENTS[self.kind].items():
            value = self.details.get(name, default)
            matches = isinstance(value, (int, float) if isinstance(default, float) else type(default))
            values.append(value if matches else default)
        return values


def with_fewer_arguments(handler: Callable[..., Any], offered: int) -> Callable[..., Any]:
    """The handler, which is called with as many of the offered arguments as it takes."""
    parameters = inspect.signature(handler).parameters.values()
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return handler
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    if len([each for each in positional if each.default is each.empty]) > offered:
        raise TypeError(f"{getattr(handler, '__name__', handler)}: a handler of this event gets {offered} arguments")
    count = min(len(positional), offered)

    @functools.wraps(handler)
    def called(*arguments: Any) -> Any:
        return handler(*arguments[:count])

    return called


def combined(results: list[Any]) -> str:
    """The result of several handlers of a wake: failed if one failed, new-data if one has new data."""
    named = {Result.NO_DATA if each is False else each if isinstance(each, Result) else Result.NEW_DATA for each in results}
    return next(each for each in (Result.FAILED, Result.NEW_DATA, Result.NO_DATA) if each in named or not named)


def seconds(body: list[Any]) -> float:
    """A time span in microseconds; the largest number stands for no limit."""
    value = body[0] if body and isinstance(body[0], int) else 0
    return math.inf if value == 2**64 - 1 else value / 1e6
