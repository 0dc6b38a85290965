#!/usr/bin/python3
"""add-fields.py LOGBOOK [WRITER]: adds fields that this release does not know to the records of a logbook, as a daemon of the next
release would have saved them. No daemon may have the file open. It prints how many records have a field more.

WRITER is the version that the logbook then names as its writer, unless it has events: they are replayed only by their own.
Sources/Daemon/Recovery/Logbook.swift describes the file, and Sources/LifecycleCore/Saving/SavedRecord.swift the records."""
import os
import struct
import sys
import zlib

# Offsets in the file.
LENGTH, WRITER, ENTRIES = 56, 96, 128
# The kinds of entries.
CORE, EVENT, RECORD = 1, 2, 3
MAGIC = b"greenroom core\n"
NUMBER, BYTES = 0, 1
# Higher than those of all fields.
NEW_NUMBER, NEW_BYTES = 5000, 5001
# Fields that have records in them: SavedCore, App, ProcessLife and LoggedRecord.
APPS, LIFE, RUN, NAME, CONTENT = 1, 5, 1, 1, 2
# A case of ProcessLife.
RUNNING = 2
added = 0


def read_number(data, at):
    """Returns an LEB128 number and the offset behind it."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def number(value):
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def prefixed(data):
    return number(len(data)) + data


def read_prefixed(data, at):
    count, at = read_number(data, at)
    return data[at:at + count], at + count


def fields(data):
    """The fields of a record: numbers of fields and their values."""
    found, at = {}, 0
    while at < len(data):
        key, at = read_number(data, at)
        found[key >> 1], at = read_number(data, at) if key & 1 == NUMBER else read_prefixed(data, at)
    return found


def record(found):
    out = b""
    for key, value in sorted(found.items()):
        form = BYTES if isinstance(value, bytes) else NUMBER
        out += number(key << 1 | form) + (prefixed(value) if form == BYTES else number(value))
    return out


def extend(found):
    """Adds a number and bytes to a record."""
    global added
    added += 1
    found[NEW_NUMBER] = 90
    found[NEW_BYTES] = b"a field of the next release"
    return record(found)


def extend_app(data):
    app = fields(data)
    case, at = read_number(app[LIFE], 0)
    values = fields(app[LIFE][at:])
    if case == RUNNING:
        values[RUN] = extend(fields(values[RUN]))
    # The values of a case are a record, too.
    app[LIFE] = number(case) + extend(values)
    return extend(app)


def extend_core(data):
    assert data.startswith(MAGIC) and zlib.crc32(data[:-4]) == struct.unpack("<I", data[-4:])[0]
    form, at = read_number(data, len(MAGIC))
    core = fields(data[at:-4])
    apps, at = b"", 0
    while at < len(core.get(APPS, b"")):
        app, at = read_prefixed(core[APPS], at)
        apps += prefixed(extend_app(app))
    if apps:
        core[APPS] = apps
    data = MAGIC + number(form) + extend(core)
    return data + struct.pack("<I", zlib.crc32(data))


def extend_record(data):
    """The contents of records of runs are records, too; those of others may be of any form."""
    logged = fields(data)
    if logged[NAME].startswith(b"run/") and CONTENT in logged:
        logged[CONTENT] = extend(fields(logged[CONTENT]))
    return extend(logged)


def checksum(kind, content):
    return zlib.crc32(bytes([kind])) ^ zlib.crc32(content)


def extend_entries(data):
    """Returns the new entries, and whether there are events."""
    out, at, has_events = b"", 0, False
    while at < len(data):
        count, expected, kind = struct.unpack_from("<IIB", data, at)
        content = data[at + 9:at + 8 + count]
        assert checksum(kind, content) == expected, f"byte {ENTRIES + at}: the checksum does not match"
        at += 8 + count
        has_events = has_events or kind == EVENT
        content = {CORE: extend_core, RECORD: extend_record}.get(kind, bytes)(content)
        out += struct.pack("<IIB", len(content) + 1, checksum(kind, content), kind) + content
    return out, has_events


def main(path, writer=None):
    with open(path, "rb") as file:
        old = file.read()
    assert old.startswith(b"greenlog"), f"{path} is not a logbook"
    entries, has_events = extend_entries(old[ENTRIES:ENTRIES + struct.unpack_from("<Q", old, LENGTH)[0]])
    head = bytearray(old[:ENTRIES])
    struct.pack_into("<Q", head, LENGTH, len(entries))
    if writer and not has_events:
        head[WRITER:] = writer.encode().ljust(ENTRIES - WRITER, b"\0")
    # Behind the entries the file has space, all of it allocated.
    new = bytes(head) + entries
    with open(os.open(path + ".next", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(new.ljust(len(old), b"\0"))
    os.rename(path + ".next", path)
    print(added)


main(*sys.argv[1:])
