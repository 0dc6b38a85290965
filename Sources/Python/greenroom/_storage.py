"""Files: memfds for the daemon, what is used without it, and the receipt of the last end."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import socket
from collections.abc import Iterator, Mapping
from typing import Any

from ._errors import Refused

# The file in STATE_DIRECTORY that has the state without Greenroom.
FILE = "restoration-state"
# A receipt has some hundred bytes, and a list of victims.
MAX_RECEIPT = 1 << 20
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


def check_size(what: str, data: bytes, limit: int) -> None:
    """Raises Refused if the data is larger than the daemon keeps."""
    if len(data) > limit:
        sentence = f"{what} has {len(data)} bytes; at most {limit} are kept"
        raise Refused("org.freedesktop.DBus.Error.LimitsExceeded", sentence[0].upper() + sentence[1:] + ".")


@contextlib.contextmanager
def sealed(name: str, data: bytes) -> Iterator[int]:
    """A memfd with this content that no process can change."""
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
        yield descriptor
    finally:
        os.close(descriptor)


def content(descriptors: list[int]) -> bytes:
    """Reads the content of the first descriptor, and closes all."""
    try:
        data = b""
        while descriptors and (part := os.pread(descriptors[0], 1 << 20, len(data))):
            data += part
        return data
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _file(scene: str | None) -> str | None:
    folder = os.environ.get("STATE_DIRECTORY", "").split(":")[0]
    if scene is not None and not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", scene):
        raise Refused("org.freedesktop.DBus.Error.InvalidArgs", f"The scene {scene!r} is not 1 to 64 of the characters A-Z a-z 0-9 _ . -.")
    return os.path.join(folder, FILE + (f".{scene}" if scene else "")) if folder else None


def save(data: bytes, scene: str | None = None) -> None:
    """Without Greenroom: replaces the file, if there is a folder for it."""
    if path := _file(scene):
        with open(path + ".new", "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(path + ".new", path)


def load(scene: str | None = None) -> bytes | None:
    """Without Greenroom: reads the file."""
    path = _file(scene)
    try:
        if path:
            with open(path, "rb") as file:
                return file.read()
    except FileNotFoundError:
        pass
    return None


def drop(scene: str | None = None) -> None:
    """Without Greenroom: removes the file."""
    if path := _file(scene):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def receipt(path: str | None) -> Mapping[str, Any] | None:
    """Reads the receipt of the last end. A file that is missing or damaged is no reason to fail a launch."""
    try:
        if path:
            with open(path, "rb") as file:
                value = json.loads(file.read(MAX_RECEIPT))
                return value if isinstance(value, dict) else None
    except (OSError, ValueError):
        pass
    return None


def notify(text: str, unless: bool = False) -> None:
    """Sends a message to a service manager, as sd_notify(3), so that the program also runs as a systemd service."""
    name = os.environ.get("NOTIFY_SOCKET", "")
    if unless or not name:
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as messages:
        messages.connect("\0" + name[1:] if name.startswith("@") else name)
        messages.send(text.encode())
