"""Listings of Hadoop in one message: an array of `FileStatus` in the form in which Hadoop itself sends it.

Asking each `FileStatus` over py4j would take four messages for each file. Hadoop writes one as its length and a message
of protobuf, `FileStatusProto` in `FSProtos.proto`; the four fields that a store needs have had their numbers since
Hadoop 3.0.
"""

from __future__ import annotations

from typing import NamedTuple

# Numbers of fields, and values of the first: `fileType`, `path`, `length`, `modification_time`.
_TYPE, _PATH, _LENGTH, _MODIFICATION_TIME = 1, 2, 3, 7
_DIRECTORY, _FILE = 1, 2


class ListedPath(NamedTuple):
    """A file or directory: its last name, size in bytes, and modification time in milliseconds since the epoch."""

    name: str
    is_file: bool
    is_directory: bool
    size: int
    modification_time: int


def parse_statuses(data: bytes) -> list[ListedPath]:
    """Return what an `ArrayWritable` of `FileStatus` holds."""
    found, at = [], 4
    for _ in range(int.from_bytes(data[:4], "big")):
        end = at + 4 + int.from_bytes(data[at : at + 4], "big")
        found.append(_parse_status(data, at + 4, end))
        at = end
    return found


def _parse_status(data: bytes, at: int, end: int) -> ListedPath:
    path, numbers = "", dict[int, int]()
    while at < end:
        key, at = _varint(data, at)
        field, wire = key >> 3, key & 7
        if wire == 0:
            numbers[field], at = _varint(data, at)
        elif wire == 2:
            length, at = _varint(data, at)
            if field == _PATH:
                path = data[at : at + length].decode()
            at += length
        else:
            at += 8 if wire == 1 else 4
    kind = numbers.get(_TYPE)
    name = path.rstrip("/").rpartition("/")[2]
    size, time = numbers.get(_LENGTH, 0), numbers.get(_MODIFICATION_TIME, 0)
    return ListedPath(name, kind == _FILE, kind == _DIRECTORY, size, time)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
