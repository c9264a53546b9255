"""Names kept in files: each name has its own log of entries, which are written by put-if-absent.

The newest entry of a name is its value: `<directory>/<name>.<20 digits>.json`. A client that changes a name writes the
entry after the one it read, so only one of several concurrent clients succeeds. Entries are never removed; names change
rarely.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from pyspark_delta.errors import CatalogError, FileAlreadyExistsError, FileNotFoundInStoreError, InvalidProposalError
from pyspark_delta.storage import ObjectStore
from pyspark_delta.storage.paths import file_name, join

_SUFFIX = len(".00000000000000000000.json")
_LONGEST = 255 - _SUFFIX  # bytes: the limit of file systems
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")


class Entry(NamedTuple):
    """An entry in the log of a name; the number is -1 if there is no entry."""

    number: int
    value: dict[str, Any]


NOTHING = Entry(-1, {})


class NameLogs:
    """The names below a directory. The parts of a path are keys of names and may have any characters."""

    def __init__(self, store: ObjectStore, root: str) -> None:
        self._store, self._root = store, root

    def newest(self, *path: str) -> Entry:
        """Return the newest entry of a name, `NOTHING` if it has none."""
        directory, name = self._place(path)
        numbers = [number for found, number in self._files(directory, name) if found == name]
        return self.entry(max(numbers), *path) if numbers else NOTHING

    def entry(self, number: int, *path: str) -> Entry:
        """Return an entry of a name, `NOTHING` if it does not exist."""
        directory, name = self._place(path)
        try:
            return Entry(number, self._read(_file(directory, name, number)))
        except FileNotFoundInStoreError:
            return NOTHING

    def put(self, after: Entry, value: dict[str, Any], *path: str) -> bool:
        """Write the entry that follows `after`; return False if another client has written it."""
        directory, name = self._place(path)
        try:
            self._store.write_if_absent(_file(directory, name, after.number + 1), orjson.dumps(value))
        except FileAlreadyExistsError:
            return False
        return True

    def entries(self, *path: str) -> Iterator[Entry]:
        """Yield the newest entries of all names in a directory."""
        directory = join(self._root, *map(_encoded, path))
        newest: dict[str, int] = {}
        for name, number in self._files(directory, ""):
            newest[name] = max(number, newest.get(name, -1))
        for name, number in sorted(newest.items()):
            yield Entry(number, self._read(_file(directory, name, number)))

    def _place(self, path: tuple[str, ...]) -> tuple[str, str]:
        *directories, name = map(_encoded, path)
        return join(self._root, *directories), name

    def _files(self, directory: str, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield the name and the number of every entry in a directory, of one name if `prefix` is not empty."""
        for status in self._store.list_from(join(directory, f"{prefix}." if prefix else "")):
            name, _, rest = file_name(status.path).partition(".")
            if prefix and name != prefix:
                return
            if len(rest) == _SUFFIX - 1 and rest[:20].isdecimal():
                yield name, int(rest[:20])

    def _read(self, path: str) -> dict[str, Any]:
        return parsed(self._store.read(path), path)


def parsed(content: bytes, path: str) -> dict[str, Any]:
    """Return the JSON object in a file of the catalog. Raises CatalogError if there is none."""
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise CatalogError(f"The file '{path}' of the catalog is damaged. Restore it from a backup.", path=path)
    return value


def _file(directory: str, name: str, number: int) -> str:
    return join(directory, f"{name}.{number:020d}.json")


def _encoded(key: str) -> str:
    """Return a key as a file name: characters other than letters, digits, `_` and `-` are percent-encoded.

    Raises InvalidProposalError for a key that is too long.
    """
    text = "".join(character if _is_plain(character) else _escape(character) for character in key)
    if len(text.encode()) > _LONGEST:
        raise InvalidProposalError(
            f"The name {key[:40]!a}... is too long for a catalog of files: its file name would need "
            f"{len(text.encode())} bytes, and may have {_LONGEST}.",
            name=key,
        )
    return text


def _is_plain(character: str) -> bool:
    return character in _PLAIN or (character > "\x7f" and unicodedata.category(character)[0] in "LN")


def _escape(character: str) -> str:
    return "".join(f"%{byte:02x}" for byte in character.encode())
