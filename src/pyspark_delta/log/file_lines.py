"""File actions of commits, newest first wins, kept as raw lines: only the lines that survive are ever parsed.

Within one commit the order of lines means nothing (C219): where a commit both removes and adds a key, the file stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import orjson

from pyspark_delta.actions.decode import Fields
from pyspark_delta.log.commits import CommitText
from pyspark_delta.log.file_keys import PLAIN_PATH, SEPARATOR, deletion_vector_id, path_key

_ADD = b'{"add":{"path":"'
_REMOVE = b'{"remove":{"path":"'
_OTHER = tuple(
    f'{{"{name}"'.encode()
    for name in ("commitInfo", "metaData", "protocol", "txn", "domainMetadata", "cdc", "sidecar", "checkpointMetadata")
)
_DELETION_VECTOR = b'"deletionVector"'


class UnreconciledCompaction(Exception):
    """A log compaction that both adds and removes a key is not the reconciliation that it should be (C099)."""


@dataclass(slots=True)
class FileLines:
    """The newest action of every key that some commits name: lines of `add` and of `remove` actions by key."""

    by_key: dict[bytes, bytes] = field(default_factory=dict)

    def adds(self) -> list[bytes]:
        """The lines of live files."""
        return [line for line in self.by_key.values() if line.startswith(b'{"add"')]

    def removes(self) -> list[bytes]:
        """The lines of tombstones."""
        return [line for line in self.by_key.values() if line.startswith(b'{"remove"')]

    def apply(self, texts: Iterable[CommitText], table_location: str) -> FileLines:
        """These lines after some more commits, in ascending order. Raises CorruptLogError."""
        state = dict(self.by_key)
        for text in texts:
            adds: dict[bytes, bytes] = {}
            removes: dict[bytes, bytes] = {}
            _collect(text, table_location, adds, removes)
            if text.compacted and not adds.keys().isdisjoint(removes):
                raise UnreconciledCompaction(text.path)
            state.update(removes)
            state.update(adds)
        return FileLines(state)


def _collect(text: CommitText, table_location: str, adds: dict[bytes, bytes], removes: dict[bytes, bytes]) -> None:
    is_plain = PLAIN_PATH.fullmatch
    has_vectors = _DELETION_VECTOR in text.data
    add_start, remove_start = len(_ADD), len(_REMOVE)
    for number, line in enumerate(text.data.split(b"\n"), 1):
        # The path can be cut out where the line has the usual form, without escapes and deletion vectors.
        if line.startswith(_ADD):
            start, target = add_start, adds
        elif line.startswith(_REMOVE):
            start, target = remove_start, removes
        elif line.startswith(_OTHER):
            continue
        else:
            _collect_parsed(text, table_location, line, number, adds, removes)
            continue
        end = line.find(b'"', start)
        path = line[start:end]
        if end > 0 and is_plain(path) and not (has_vectors and _DELETION_VECTOR in line):
            target[path] = line
        else:
            _collect_parsed(text, table_location, line, number, adds, removes)


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
            key += SEPARATOR + deletion_vector_id(descriptor)
        target[key] = line if line.startswith(b'{"%b":' % name.encode()) else orjson.dumps({name: content})
