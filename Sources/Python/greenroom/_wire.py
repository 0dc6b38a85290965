"""The wire format of D-Bus: values, messages, and a decoder that accepts bytes from a peer that may be hostile.

Only what org.greenroom.Self1 needs: one header, the types of its arguments, and descriptors. Each length is checked before it is
used, so a message costs at most MAX_MESSAGE bytes. Values are Python's own; a variant that is read is its value alone, and one
that is written is a Variant.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

# A push has at most 64 KiB and a URL 8 KiB, so 1 MiB is enough for every message of the interface.
MAX_MESSAGE = 1 << 20
# A message of the interface has one descriptor.
MAX_DESCRIPTORS = 16
# The specification allows 32 arrays and 32 structs.
MAX_DEPTH = 32
# A path, an interface, a member, an error name and a signature of 255 bytes each, with space for fields that are not known.
MAX_FIELDS = 16 << 10

METHOD_CALL, METHOD_RETURN, ERROR, SIGNAL = 1, 2, 3, 4
NO_REPLY_EXPECTED = 1

_FIXED = {"y": "B", "n": "h", "q": "H", "i": "i", "u": "I", "x": "q", "t": "Q", "d": "d", "b": "I", "h": "I"}
_ALIGNMENT = {"y": 1, "n": 2, "q": 2, "i": 4, "u": 4, "x": 8, "t": 8, "d": 8, "b": 4, "h": 4}
_ALIGNMENT |= {"s": 4, "o": 4, "g": 1, "v": 1, "a": 4, "(": 8, "{": 8}
_FIELDS = {1: "o", 2: "s", 3: "s", 4: "s", 5: "u", 6: "s", 7: "s", 8: "g", 9: "u"}


class WireError(ValueError):
    """Bytes that are no valid message, or a value that does not fit its type."""


class Variant(NamedTuple):
    """A value with its type, to be written as a variant."""

    signature: str
    value: Any


@dataclass
class Message:
    """One message. `descriptors` belong to its owner, which closes them."""

    type: int
    serial: int = 0
    flags: int = 0
    path: str = ""
    interface: str = ""
    member: str = ""
    error: str = ""
    reply_to: int = 0
    signature: str = ""
    body: list[Any] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)


def types(signature: str) -> list[str]:
    """Splits a signature into its complete types.

    Raises WireError if the signature is not valid.
    """
    found = []
    start = 0
    while start < len(signature):
        end = _end_of_type(signature, start, 0)
        found.append(signature[start:end])
        start = end
    return found


def _end_of_type(signature: str, start: int, depth: int) -> int:
    if depth > MAX_DEPTH:
        raise WireError(f"the signature is nested deeper than {MAX_DEPTH}")
    kind = signature[start : start + 1]
    if kind == "a":
        if signature[start + 1 : start + 2] != "{":
            return _end_of_type(signature, start + 1, depth + 1)
        key_end = _end_of_type(signature, start + 2, depth + 1)
        end = _end_of_type(signature, key_end, depth + 1)
        if key_end != start + 3 or signature[start + 2] in "av(" or signature[end : end + 1] != "}":
            raise WireError(f"invalid dictionary in signature {signature!r}")
        return end + 1
    if kind == "(":
        end = start + 1
        while signature[end : end + 1] != ")":
            end = _end_of_type(signature, end, depth + 1)
        if end == start + 1:
            raise WireError("a struct has no members")
        return end + 1
    if kind == "" or kind not in _ALIGNMENT or kind == "{":
        raise WireError(f"invalid signature {signature!r}")
    return start + 1


# ---- Writing


class _Writer:
    def __init__(self, order: str) -> None:
        self.data = bytearray()
        self.order = order

    def align(self, size: int) -> None:
        self.data.extend(bytes(-len(self.data) % size))

    def value(self, kind: str, value: Any) -> None:
        code = kind[0]
        if code in _FIXED:
            self.align(_ALIGNMENT[code])
            self.data += struct.pack(self.order + _FIXED[code], value)
        elif code in "so":
            text = self.text(value)
            self.align(4)
            self.data += struct.pack(self.order + "I", len(text)) + text + b"\0"
        elif code == "g":
            text = self.text(value)
            self.data += struct.pack("<B", len(text)) + text + b"\0"
        elif code == "v":
            self.value("g", value.signature)
            self.value(value.signature, value.value)
        elif code == "a":
            self.array(kind[1:], value)
        else:
            self.align(8)
            for member, item in zip(types(kind[1:-1]), value, strict=True):
                self.value(member, item)

    def array(self, kind: str, value: Any) -> None:
        self.align(4)
        position = len(self.data)
        self.data += bytes(4)
        self.align(_ALIGNMENT[kind[0]])
        start = len(self.data)
        if kind[0] == "{":
            for key, item in value.items():
                self.align(8)
                self.value(kind[1], key)
                self.value(kind[2:-1], item)
        else:
            for item in value:
                self.value(kind, item)
        struct.pack_into(self.order + "I", self.data, position, len(self.data) - start)

    @staticmethod
    def text(value: str) -> bytes:
        text = value.encode()
        if b"\0" in text:
            raise WireError("a string contains a NUL")
        return text


def encode(message: Message, order: str = "<") -> bytes:
    """Returns the bytes of a message; its descriptors are sent beside them. The order is little-endian, or ">".

    Raises WireError if a value does not fit its type or the message is larger than MAX_MESSAGE.
    """
    try:
        body = _Writer(order)
        for kind, value in zip(types(message.signature), message.body, strict=True):
            body.value(kind, value)
        fields = {1: message.path, 2: message.interface, 3: message.member, 4: message.error, 5: message.reply_to}
        fields |= {8: message.signature, 9: len(message.descriptors)}
        header = _Writer(order)
        header.data += struct.pack(
            order + "BBBBII", ord("l" if order == "<" else "B"), message.type, message.flags, 1, len(body.data), message.serial
        )
        header.value("a(yv)", [(code, Variant(_FIELDS[code], value)) for code, value in fields.items() if value])
        header.align(8)
    except (struct.error, UnicodeEncodeError, AttributeError, TypeError) as error:
        raise WireError(f"a value does not fit its type: {error}") from error
    data = bytes(header.data + body.data)
    if len(data) > MAX_MESSAGE:
        raise WireError(f"the message has {len(data)} bytes; at most {MAX_MESSAGE} are allowed")
    return data


# ---- Reading


class _Reader:
    def __init__(self, data: bytes, order: str) -> None:
        self.data = data
        self.order = order
        self.position = 0

    def take(self, count: int) -> bytes:
        end = self.position + count
        if end > len(self.data):
            raise WireError("a value ends beyond its message")
        self.position, start = end, self.position
        return self.data[start:end]

    def align(self, size: int) -> None:
        if any(self.take(-self.position % size)):
            raise WireError("the padding is not zero")

    def value(self, kind: str, depth: int = 0) -> Any:
        if depth > 2 * MAX_DEPTH:
            raise WireError("values are nested too deep")
        code = kind[0]
        if code in _FIXED:
            self.align(_ALIGNMENT[code])
            number = struct.unpack(self.order + _FIXED[code], self.take(_ALIGNMENT[code]))[0]
            if code == "b" and number > 1:
                raise WireError(f"a boolean is {number}; expected 0 or 1")
            return bool(number) if code == "b" else number
        if code in "so":
            return self.text(self.value("u"))
        if code == "g":
            return self.text(self.take(1)[0])
        if code == "v":
            inner = types(self.value("g"))
            if len(inner) != 1:
                raise WireError("a variant does not have one type")
            return self.value(inner[0], depth + 1)
        if code == "a":
            return self.array(kind[1:], depth + 1)
        self.align(8)
        return tuple(self.value(member, depth + 1) for member in types(kind[1:-1]))

    def array(self, kind: str, depth: int) -> Any:
        size = self.value("u")
        self.align(_ALIGNMENT[kind[0]])
        end = self.position + size
        if end > len(self.data):
            raise WireError("an array ends beyond its message")
        items: Any
        if kind[0] == "{":
            items = {}
            while self.position < end:
                self.align(8)
                key = self.value(kind[1], depth)
                items[key] = self.value(kind[2:-1], depth)
        elif kind == "y":
            items = self.take(size)
        else:
            items = []
            while self.position < end:
                items.append(self.value(kind, depth))
        if self.position != end:
            raise WireError("an array ends within a value")
        return items

    def text(self, size: int) -> str:
        text = self.take(size)
        if self.take(1) != b"\0" or b"\0" in text:
            raise WireError("a string has no NUL at its end, or one inside")
        try:
            return text.decode()
        except UnicodeDecodeError as error:
            raise WireError("a string is not UTF-8") from error


def _sizes(head: bytes) -> tuple[str, int, int]:
    """The byte order of a message, and the sizes of its header with padding and of its body."""
    order = {ord("l"): "<", ord("B"): ">"}.get(head[0])
    if order is None or head[3] != 1:
        raise WireError("not a D-Bus message")
    body, _, fields = struct.unpack(order + "III", head[4:16])
    if fields > MAX_FIELDS or body > MAX_MESSAGE - MAX_FIELDS - 24:
        raise WireError(f"a message is larger than {MAX_MESSAGE} bytes, or has a header larger than {MAX_FIELDS}")
    return order, 16 + fields + -fields % 8, body


_ATTRIBUTES = {1: "path", 2: "interface", 3: "member", 4: "error", 5: "reply_to", 8: "signature"}
_REQUIRED = {METHOD_CALL: ("path", "member"), METHOD_RETURN: ("reply_to",), ERROR: ("error", "reply_to")}
_REQUIRED |= {SIGNAL: ("path", "interface", "member")}


def _parse(data: bytes, order: str, header_size: int) -> tuple[Message, int]:
    """A whole message without its descriptors, and how many it has."""
    header = _Reader(data[:header_size], order)
    _, kind, flags, _, _, serial = struct.unpack(order + "BBBBII", header.take(12))
    if kind == 0 or serial == 0:
        raise WireError("a message has no type or no serial")
    message = Message(kind, serial, flags)
    descriptors = 0
    size = header.value("u")
    end = header.position + size
    while header.position < end:
        header.align(8)
        code = header.value("y")
        inner = types(header.value("g"))
        if inner != [_FIELDS[code]] if code in _FIELDS else len(inner) != 1:
            raise WireError(f"header field {code} has the type {''.join(inner)!r}")
        value = header.value(inner[0])
        if code in _ATTRIBUTES:
            setattr(message, _ATTRIBUTES[code], value)
        elif code == 9:
            descriptors = value
    if header.position != end:
        raise WireError("the header ends within a field")
    header.align(8)
    if any(not getattr(message, name) for name in _REQUIRED.get(kind, ())):
        raise WireError(f"a message of type {kind} lacks a header field")
    body = _Reader(data[header_size:], order)
    message.body = [body.value(item) for item in types(message.signature)]
    if body.position != len(body.data):
        raise WireError("the body is longer than its signature")
    return message, descriptors


class Decoder:
    """Turns received bytes and descriptors into messages. It never holds more than MAX_MESSAGE bytes and MAX_DESCRIPTORS."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._descriptors: list[int] = []

    def feed(self, data: bytes, descriptors: Sequence[int] = ()) -> Iterator[Message]:
        """Returns the messages that are complete. Descriptors belong to the decoder until their message is returned.

        Raises WireError at the first bytes that are not valid. The connection is useless afterwards.
        """
        self._descriptors += descriptors
        if len(self._descriptors) > MAX_DESCRIPTORS:
            raise WireError(f"more than {MAX_DESCRIPTORS} descriptors wait for their messages")
        self._data += data
        while len(self._data) >= 16:
            order, header, body = _sizes(bytes(self._data[:16]))
            if len(self._data) < header + body:
                return
            message, count = _parse(bytes(self._data[: header + body]), order, header)
            del self._data[: header + body]
            if count > len(self._descriptors):
                raise WireError(f"a message names {count} descriptors and came with {len(self._descriptors)}")
            message.descriptors = self._descriptors[:count]
            del self._descriptors[:count]
            yield message

    def close(self) -> None:
        """Closes descriptors whose message did not arrive."""
        close_all(self._descriptors)
        self._descriptors.clear()
        self._data.clear()


def close_all(descriptors: Iterable[int]) -> None:
    """Closes descriptors."""
    for descriptor in descriptors:
        os.close(descriptor)


def socket_addresses(address: str) -> list[str]:
    """Returns the socket names of a D-Bus address: `unix:path=` and `unix:abstract=`, several separated by `;`.

    A name of the abstract namespace begins with a NUL. Raises WireError if the address names no Unix socket.
    """
    found = []
    for part in address.split(";"):
        transport, _, rest = part.partition(":")
        pairs = dict(pair.partition("=")[::2] for pair in rest.split(","))
        for key, prefix in (("path", ""), ("abstract", "\0")):
            if transport == "unix" and pairs.get(key):
                found.append(prefix + _unescaped(pairs[key]))
    if not found:
        raise WireError(f"the address {address!r} names no Unix socket; expected unix:path=…")
    return found


def _unescaped(text: str) -> str:
    parts = text.encode(errors="surrogateescape").split(b"%")
    try:
        data = parts[0] + b"".join(bytes.fromhex(part[:2].decode()) + part[2:] for part in parts[1:])
    except ValueError as error:
        raise WireError(f"invalid escape in the address {text!r}") from error
    return os.fsdecode(data)
