"""The errors of this package."""

from __future__ import annotations


class Error(Exception):
    """The base of all errors of this package."""


class Refused(Error):
    """greenroomd refused a request. The text is its sentence."""

    def __init__(self, name: str, sentence: str) -> None:
        super().__init__(sentence)
        #: The name of the D-Bus error, for example `org.greenroom.Error.NotOpen`.
        self.name = name


class Unavailable(Error, TimeoutError):
    """greenroomd did not answer in time. It may be restarting; the app continues to run."""


class TaskExpired(Error, TimeoutError):
    """The background time ends, so a task was cancelled."""
