"""File actions of commits, newest first wins, kept as raw lines: only surviving lines are parsed.

The key of a logical file is (path, deletion vector id), normalised across spellings of the path. Paths are compared
decoded and resolved (C144, C215, C220): `a%20b` and `a b`, `file:/t/x`, `/t/x` and `x` below `/t` are one file. The key
is the location, relative to the table if it is below it, followed by a NUL and the id of the deletion vector, if any.

Within one commit the order of lines has no meaning (C219): if a commit both removes and adds a key, the file stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import orjson

from pyspark_delta.actions.decode import Fields
from pyspark_delta.errors import CorruptLogError
from pyspark_delta.log.commits import CommitText
from pyspark_delta.storage.paths import resolve_file

_ADD = b'{"add":{"path":"'
_REMOVE = b'{"remove":{"path":"'
_OTHER = tuple(
    f'{{"{name}"'.encode()
    for name in ("commitInfo", "metaData", "protocol", "txn", "domainMetadata", "cdc", "sidecar", "checkpointMetadata")
)
_DELETION_VECTOR = b'"deletionVector"'
_USUAL = (_REMOVE, *_OTHER)
# Complete paths that have only one spelling, which is their key.
_PLAIN_PATH = re.compile(rb"(?!\.{1,2}(?:/|\Z))[^%:\\\0/]+(?:/(?!\.{1,2}(?:/|\Z))[^%:\\\0/]+)*")
_UNUSUAL = (b"%", b":", b"\\", b"\0", b"//", b"/./", b"/../")
_ROOT = re.compile(rb"[A-Za-z][A-Za-z0-9+.\-]*:(?://[^/%\\\0]*)?/")
_SEPARATOR = b"\0"
_FLUSHED_AT = 4 << 20  # bytes of commits


class UnreconciledCompaction(Exception):
    """A log compaction that both adds and removes a key, so it is not a valid reconciliation (C099)."""


@dataclass(slots=True)
class FileLines:
    """The newest action of every key that some commits name: lines of `add` and of `remove` actions by key."""

    by_key: dict[bytes, bytes] = field(default_factory=dict)

    def adds(self) -> list[bytes]:
        """Return the lines of live files."""
        return [line for line in self.by_key.values() if line.startswith(b'{"add"')]

    def removes(self) -> list[bytes]:
        """Return the lines of tombstones."""
        return [line for line in self.by_key.values() if line.startswith(b'{"remove"')]

    def apply(self, texts: Iterable[CommitText], table_location: str) -> FileLines:
        """Return the state after some more commits, in ascending order. Raises CorruptLogError."""
        reconciled = _Reconciled(dict(self.by_key), table_location)
        for text in texts:
            reconciled.add(text)
        reconciled.flush()
        return FileLines(reconciled.state)


class _Reconciled:
    """Apply commits to a state: together if all their lines have the usual form, otherwise one by one.

    In the usual form a line begins with a plain path, relative or absolute, and there is no deletion vector.
    """

    def __init__(self, state: dict[bytes, bytes], table_location: str) -> None:
        self.state = state
        self._keys = _PlainKeys(table_location)
        self._waiting: list[CommitText] = []
        self._paths: list[bytes] = []
        self._lines: list[bytes] = []
        self._bytes = 0

    def add(self, text: CommitText) -> None:
        """Apply one more commit to the state, now or at the next `flush`. Raises UnreconciledCompaction."""
        found = _usual_lines(text.data)
        if found is None:
            self.flush()
            self._apply(text)
            return
        paths, lines, removed = found
        if text.compacted and not set(paths[:removed]).isdisjoint(paths[removed:]):
            raise UnreconciledCompaction(text.path)
        self._waiting.append(text)
        self._paths += paths
        self._lines += lines
        self._bytes += len(text.data)
        if self._bytes >= _FLUSHED_AT:
            self.flush()

    def flush(self) -> None:
        """Apply the pending commits to the state."""
        keys = self._keys.of_all(self._paths)
        if keys is not None:
            self.state.update(zip(keys, self._lines, strict=True))
        else:
            for text in self._waiting:
                self._apply(text)
        self._waiting, self._paths, self._lines, self._bytes = [], [], [], 0

    def _apply(self, text: CommitText) -> None:
        adds: dict[bytes, bytes] = {}
        removes: dict[bytes, bytes] = {}
        _collect(text, self._keys, adds, removes)
        if text.compacted and not adds.keys().isdisjoint(removes):
            raise UnreconciledCompaction(text.path)
        self.state.update(removes)
        self.state.update(adds)


def _usual_lines(data: bytes) -> tuple[list[bytes], list[bytes], int] | None:
    """Return paths and lines of a commit, removes first, and the number of removes.

    None if some line does not have the usual form.
    """
    if _DELETION_VECTOR in data:
        return None
    lines = data.split(b"\n")
    adds = [line for line in lines if line.startswith(_ADD)]
    others = [line for line in lines if not line.startswith(_ADD)]
    removes = [line for line in others if line.startswith(_REMOVE)]
    if not all(line.startswith(_USUAL) or not line or line.isspace() for line in others):
        return None
    add, remove = len(_ADD), len(_REMOVE)
    try:
        paths = [line[remove : line.index(b'"', remove)] for line in removes]
        paths += [line[add : line.index(b'"', add)] for line in adds]
    except ValueError:
        return None
    return paths, removes + adds, len(removes)


class _PlainKeys:
    """The keys of plain paths: those that have only one spelling, and absolute ones that are plain below their root."""

    def __init__(self, table_location: str) -> None:
        self.table_location = table_location
        self._table = f"{table_location.rstrip('/')}/".encode("utf-8", "surrogatepass")
        self._roots: dict[bytes, bytes | None] = {}

    def of(self, path: bytes) -> bytes | None:
        """Return the key of a path, or None if the path is not plain."""
        if _PLAIN_PATH.fullmatch(path) is not None:
            return path
        found = _ROOT.match(path)
        root = None if found is None else self._located(found[0])
        if found is None or root is None or _PLAIN_PATH.fullmatch(path, found.end()) is None:
            return None
        return (root + path[found.end() :]).removeprefix(self._table)

    def of_all(self, paths: list[bytes]) -> list[bytes] | None:
        """Return the keys of paths with the same root, or without one; None if another path is among them."""
        if _are_plain(paths):
            return paths
        found = _ROOT.match(paths[0])
        root = None if found is None else self._located(found[0])
        if found is None or root is None or not all(path.startswith(found[0]) for path in paths):
            return None
        below = [path[found.end() :] for path in paths]
        return [(root + path).removeprefix(self._table) for path in below] if _are_plain(below) else None

    def _located(self, root: bytes) -> bytes | None:
        """Return what the locations of paths with a root begin with; None if such paths are not valid."""
        if root not in self._roots:
            try:
                location = resolve_file(self.table_location, f"{root.decode('utf-8', 'surrogatepass')}x")
                self._roots[root] = location.encode("utf-8", "surrogatepass")[:-1]
            except (CorruptLogError, UnicodeDecodeError):
                self._roots[root] = None
        return self._roots[root]


def _are_plain(paths: list[bytes]) -> bool:
    """True for each path that is its own key; the vectorised form of `_PLAIN_PATH`."""
    if not paths:
        return True
    text = b"/%b/" % b"/".join(paths)
    return not any(part in text for part in _UNUSUAL)


def _collect(text: CommitText, keys: _PlainKeys, adds: dict[bytes, bytes], removes: dict[bytes, bytes]) -> None:
    has_vectors = _DELETION_VECTOR in text.data
    add_start, remove_start = len(_ADD), len(_REMOVE)
    for number, line in enumerate(text.data.split(b"\n"), 1):
        # The path can be sliced from a line in the usual form, without escapes and deletion vectors.
        if line.startswith(_ADD):
            start, target = add_start, adds
        elif line.startswith(_REMOVE):
            start, target = remove_start, removes
        elif line.startswith(_OTHER):
            continue
        else:
            _collect_parsed(text, keys.table_location, line, number, adds, removes)
            continue
        end = line.find(b'"', start)
        key = keys.of(line[start:end]) if end > 0 and not (has_vectors and _DELETION_VECTOR in line) else None
        if key is not None:
            target[key] = line
        else:
            _collect_parsed(text, keys.table_location, line, number, adds, removes)


def _collect_parsed(
    text: CommitText,
    table_location: str,
    line: bytes,
    number: int,
    adds: dict[bytes, bytes],
    removes: dict[bytes, bytes],
) -> None:
    if not line or line.isspace():
        return
    value = text.parse(line, number)
    if not isinstance(value, dict):
        raise Fields({}, f"line {number}", text.path).error(f"expected an object with one action, found {value!r:.80}")
    for name, target in (("add", adds), ("remove", removes)):
        content = value.get(name)
        if content is None:
            continue
        fields = Fields(content, f"line {number}, {name}", text.path)
        key = path_key(table_location, fields.string("path"))
        descriptor = fields.child("deletionVector")
        if descriptor is not None:
            key += _SEPARATOR + _deletion_vector_id(descriptor)
        target[key] = line if line.startswith(b'{"%b":' % name.encode()) else orjson.dumps({name: content})


def path_key(table_location: str, raw_path: str) -> bytes:
    """Return the key of a path in the log. Raises CorruptLogError for a path that names no file."""
    encoded = raw_path.encode("utf-8", "surrogatepass")
    if _PLAIN_PATH.fullmatch(encoded) is not None:
        return encoded
    location = resolve_file(table_location, raw_path)
    prefix = table_location.rstrip("/") + "/"
    return location.removeprefix(prefix).encode("utf-8", "surrogatepass")


def _deletion_vector_id(descriptor: Fields) -> bytes:
    """Return the id of a deletion vector from its JSON object (C266). Raises CorruptLogError if it is malformed."""
    offset = descriptor.optional_integer("offset")
    suffix = "" if offset is None else f"@{offset}"
    text = f"{descriptor.string('storageType')}{descriptor.string('pathOrInlineDv')}{suffix}"
    return text.encode("utf-8", "surrogatepass")
