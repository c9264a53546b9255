"""The contents of one commit, or another file of actions, for checks: file actions as numbers, the others as objects.

Damage is a finding, never an error: what can be read of the file is still returned, with the note that it is
incomplete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import (
    BASE_ROW_ID,
    DATA_CHANGE,
    DEFAULT_ROW_COMMIT_VERSION,
    DELETION_TIMESTAMP,
    DELETION_VECTOR,
    MODIFICATION_TIME,
    PARTITION_VALUES,
    PATH,
    SIZE,
    STATS,
)
from pyspark_delta.actions.decode import decode_action
from pyspark_delta.actions.model import Action
from pyspark_delta.errors import DeltaError
from pyspark_delta.expressions.tree import Column
from pyspark_delta.log.arrays import map_value
from pyspark_delta.log.commits import CommitText
from pyspark_delta.log.line_columns import parse_lines
from pyspark_delta.log.reconciliation import file_keys
from pyspark_delta.maintenance.checking.findings import Findings
from pyspark_delta.maintenance.checking.live_files import FILE, UNKNOWN, Array, hashes
from pyspark_delta.schema.types import BOOLEAN, LONG
from pyspark_delta.stats.parse import parse_stats

ADDED = (
    PATH,
    PARTITION_VALUES,
    SIZE,
    MODIFICATION_TIME,
    STATS,
    DELETION_VECTOR,
    BASE_ROW_ID,
    DEFAULT_ROW_COMMIT_VERSION,
)
_REMOVED = (PATH, DELETION_TIMESTAMP, DELETION_VECTOR, DATA_CHANGE)
_PART = 8 << 20  # bytes of a commit that are parsed at a time

KNOWN = (
    "add",
    "remove",
    "cdc",
    "metaData",
    "protocol",
    "txn",
    "commitInfo",
    "domainMetadata",
    "checkpointMetadata",
    "sidecar",
)
_SECOND = re.compile(rb'\},\s*"(?:%b)"\s*:\s*[{n]' % b"|".join(name.encode() for name in KNOWN))
_VALUES = (
    r'"partitionValues":\s*(?P<values>\{(?:\s*"(?:[^"\\]|\\.)*"\s*:\s*'
    r'(?:null|true|false|[-+0-9.eE]+|"(?:[^"\\]|\\.)*")\s*,?)*\s*\})'
)
_NUM_RECORDS, _TIGHT = Column(("numRecords",), LONG), Column(("tightBounds",), BOOLEAN)


@dataclass(frozen=True)
class FileActions:
    """The `add` or the `remove` actions of a file of actions; all members have the same length.

    `paths` are as in the log. Of removes, `files` has only keys and paths.
    """

    paths: pa.Array
    files: Array
    data_change: Array
    lines: Array
    times: Array  # of removes: their deletion timestamps

    def __len__(self) -> int:
        return len(self.files)

    @classmethod
    def joined(cls, parts: Sequence[FileActions]) -> FileActions:
        """Return the actions of all parts of a file."""
        if len(parts) == 1:
            return parts[0]
        none = np.zeros(0, np.int64)
        return cls(
            pa.concat_arrays([pa.array([], pa.string()), *(part.paths for part in parts)]),
            np.concatenate([np.zeros(0, FILE), *(part.files for part in parts)]),
            np.concatenate([np.zeros(0, np.bool_), *(part.data_change for part in parts)]),
            np.concatenate([none, *(part.lines for part in parts)]),
            np.concatenate([none, *(part.times for part in parts)]),
        )


@dataclass
class Contents:
    """All actions of one file. `is_complete` is False if some of it could not be read."""

    version: int
    path: str
    adds: FileActions
    removes: FileActions
    others: list[tuple[int, Action]] = field(default_factory=list)
    unknown: int = 0
    first: str = ""
    is_complete: bool = True

    def of(self, *kinds: type) -> list[tuple[int, Any]]:
        """Return the other actions of some kinds, with their line numbers."""
        return [(line, action) for line, action in self.others if isinstance(action, kinds)]


def read_contents(
    text: CommitText,
    location: str,
    names: Sequence[str],
    findings: Findings,
    *,
    partition_check: bool = True,
) -> Contents:
    """Return the actions in the text of a file, with findings L02, L03 and F04. `names` are the partition columns."""
    reader = _Reader(text, location, tuple(names), findings, partition_check)
    return reader.read()


class _Reader:
    def __init__(
        self, text: CommitText, location: str, names: tuple[str, ...], findings: Findings, partition_check: bool
    ) -> None:
        self._text, self._location, self._names, self._findings = text, location, names, findings
        self._partition_check = partition_check
        self._adds: list[FileActions] = []
        self._removes: list[FileActions] = []
        self._contents = Contents(text.version, text.path, _none(), _none())

    def read(self) -> Contents:
        contents = self._contents
        for number, part in _parts(self._text.data):
            self._read_part(number, part)
        contents.adds, contents.removes = FileActions.joined(self._adds), FileActions.joined(self._removes)
        return contents

    def _read_part(self, first: int, part: bytes) -> None:
        adds: list[tuple[int, bytes]] = []
        removes: list[tuple[int, bytes]] = []
        for number, line in enumerate(part.split(b"\n"), first):
            if line.startswith(b'{"add":{'):
                adds.append((number, line))
                name = "add"
            elif line.startswith(b'{"remove":{'):
                removes.append((number, line))
                name = "remove"
            elif not line or line.isspace():
                continue
            else:
                name = self._read_other(number, line, adds, removes)
            self._contents.first = self._contents.first or name
        position = 0
        while (found := _SECOND.search(part, position)) is not None:
            position = self._check_single(first + part.count(b"\n", 0, found.start()), part, found.start())
        if adds:
            self._take(adds, "add")
        if removes:
            self._take(removes, "remove")

    def _read_other(
        self, number: int, line: bytes, adds: list[tuple[int, bytes]], removes: list[tuple[int, bytes]]
    ) -> str:
        """Read a line that does not begin as a file action does; return the name of its action."""
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            self._damaged("L02", number, f"line {number} of '{self._text.path}' is not valid JSON ({error})")
            return "?"
        if not isinstance(value, dict):
            self._damaged("L02", number, f"line {number} of '{self._text.path}' is not a JSON object")
            return "?"
        known = [name for name in KNOWN if value.get(name) is not None]
        if not known:
            self._contents.unknown += 1
            return next(iter(value), "?")
        if len(known) > 1:
            self._several(number, known)
        for name in known:
            if name in ("add", "remove"):
                (adds if name == "add" else removes).append((number, orjson.dumps({name: value[name]})))
            else:
                self._decode(number, {name: value[name]})
        return known[0]

    def _decode(self, number: int, value: dict[str, Any]) -> None:
        try:
            action = decode_action(value, path=self._text.path, line=number)
        except DeltaError as error:
            self._damaged("L03", number, error.message)
            return
        if action is not None:
            self._contents.others.append((number, action))

    def _check_single(self, number: int, part: bytes, position: int) -> int:
        """Check a line that may have a second action; return where the next line begins."""
        start, end = part.rfind(b"\n", 0, position) + 1, part.find(b"\n", position)
        end = end if end >= 0 else len(part)
        line = part[start:end]
        if line.startswith((b'{"add":{', b'{"remove":{')):  # others are read as objects
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError:
                return end  # reported where the columns are parsed
            known = [name for name in KNOWN if value.get(name) is not None]
            if len(known) > 1:
                self._several(number, known)
        return end

    def _several(self, number: int, known: list[str]) -> None:
        self._damaged(
            "L02",
            number,
            f"line {number} of '{self._text.path}' holds {len(known)} actions ({', '.join(known)}) instead of one",
        )

    # --------------------------------------------------------------------------------------------- file actions
    def _take(self, numbered: list[tuple[int, bytes]], action: str) -> None:
        lines = [line for _, line in numbered]
        numbers = np.fromiter((number for number, _ in numbered), np.int64, len(numbered))

        def locate(line: bytes) -> tuple[str, int]:
            return self._text.path, int(numbers[lines.index(line)])

        fields = (*ADDED, DATA_CHANGE) if action == "add" else _REMOVED
        target = self._adds if action == "add" else self._removes
        try:
            start = 0
            for batch in parse_lines(lines, action, fields, self._names, locate):
                target.append(self._actions(batch, numbers[start : start + len(batch)], action))
                start += len(batch)
        except (DeltaError, pa.ArrowException) as error:
            message = error.message if isinstance(error, DeltaError) else str(error).splitlines()[0]
            is_json = "is not valid JSON" in message
            self._damaged("L02" if is_json else "L03", None, message)
        if action == "add" and self._partition_check and self._findings.wants("F04"):
            self._check_partition_keys(lines, numbers)

    def _actions(self, batch: pa.RecordBatch, numbers: Array, action: str) -> FileActions:
        changes = batch.column(batch.schema.get_field_index("data_change"))
        if changes.null_count:
            at = int(np.flatnonzero(np.asarray(changes.is_null()))[0])
            self._findings.add(
                "L03",
                f"{changes.null_count} {action} actions lack the member dataChange, the first for "
                f"'{batch.column(0)[at].as_py()}'.",
                version=self._text.version,
                line=int(numbers[at]),
                file=self._text.path,
            )
        files = described(batch, self._location, self._names) if action == "add" else keyed(batch, self._location)
        times = np.zeros(len(batch), np.int64)
        if action == "remove":
            times = _numbers(batch.column(1), 0)
        return FileActions(batch.column(0), files, np.asarray(pc.fill_null(changes, True)), numbers, times)

    def _check_partition_keys(self, lines: list[bytes], numbers: Array) -> None:
        """Check that each file names all partition columns, and no others (C139, C373)."""
        values = pc.struct_field(pc.extract_regex(pa.array(lines, pa.binary()), _VALUES.encode()), [0])
        coded = values.dictionary_encode()
        expected = set(self._names)
        wrong = [
            position
            for position, text in enumerate(coded.dictionary.to_pylist())
            if text is not None and set(orjson.loads(text)) != expected
        ]
        bad = np.asarray(pc.fill_null(pc.is_in(coded.indices, pa.array(wrong, coded.indices.type)), False))
        unread = np.flatnonzero(np.asarray(values.is_null()))
        for at in unread[:1000]:  # another order of members, or a value that is no text
            try:
                found = orjson.loads(lines[at])["add"].get("partitionValues")
            except (orjson.JSONDecodeError, AttributeError, KeyError):
                continue
            bad[at] = not isinstance(found, dict) or set(found) != expected
        rows = np.flatnonzero(bad)
        for at in rows[:1]:
            self._findings.add(
                "F04",
                f"{len(rows)} added files do not name exactly the partition columns "
                f"({', '.join(sorted(expected)) or 'none'}) in partitionValues.",
                version=self._text.version,
                line=int(numbers[at]),
                file=self._text.path,
            )

    def _damaged(self, id_: str, line: int | None, problem: str) -> None:
        self._contents.is_complete = False
        self._findings.add(
            id_,
            problem if problem.endswith(".") else f"{problem[0].upper()}{problem[1:]}.",
            version=self._text.version,
            line=line,
            file=self._text.path,
        )


def keyed(batch: pa.RecordBatch, location: str) -> Array:
    """Return the keys and paths of file actions, with the columns path and deletion_vector. Raises CorruptLogError."""
    files = np.zeros(len(batch), FILE)
    paths = batch.column(batch.schema.get_field_index("path"))
    vectors = batch.column(batch.schema.get_field_index("deletion_vector"))
    files["path"] = hashes(file_keys(paths, None, location))
    files["key"] = files["path"]
    if vectors.null_count < len(vectors):
        files["key"] = hashes(file_keys(paths, vectors, location))
    return files


def described(batch: pa.RecordBatch, location: str, names: Sequence[str]) -> Array:
    """Return the numbers of added files, with the columns `ADDED`. Raises CorruptLogError."""
    files = keyed(batch, location)
    column = {name: batch.column(position) for position, name in enumerate(batch.schema.names)}
    files["size"] = _numbers(column["size"])
    files["base"], files["commit"] = _numbers(column["base_row_id"]), _numbers(column["default_row_commit_version"])
    files["stats"] = hashes(column["stats"])
    files["records"] = _numbers(parse_stats(column["stats"], [_NUM_RECORDS]).column(0))
    vectors = column["deletion_vector"]
    files["deleted"] = UNKNOWN
    if vectors.null_count < len(vectors):
        files["deleted"] = _numbers(pc.struct_field(vectors, "cardinality"))
        tight = parse_stats(column["stats"], [_TIGHT]).column(0)
        bounded = pc.fill_null(pc.match_substring(column["stats"], '"minValues":{"'), False)
        files["tight"] = np.asarray(pc.and_(pc.fill_null(tight, True), bounded))
    files["partition"] = partition_hashes(column["partition_values"], names)
    return files


def partition_hashes(maps: pa.MapArray, names: Sequence[str]) -> Array:
    """Return a hash of the partition values of each file; null and the empty text are the same (C416)."""
    if not names or not len(maps):
        return np.zeros(len(maps), np.int64)
    values = [pc.fill_null(map_value(maps, name).cast(pa.string()), "") for name in names]
    coded = pc.binary_join_element_wise(*values, "\0").dictionary_encode()
    found: Array = hashes(coded.dictionary)[np.asarray(coded.indices)]
    return found


def _numbers(column: pa.Array, missing: int = UNKNOWN) -> Array:
    return np.asarray(pc.fill_null(column, missing).cast(pa.int64()))


def _parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield parts of a text that end with a line, each with the number of its first line."""
    start, number = 0, 1
    while start < len(data):
        end = len(data)
        if end - start > _PART:
            end = data.rfind(b"\n", start, start + _PART) + 1 or data.find(b"\n", start + _PART) + 1 or end
        part = data[start:end]
        yield number, part
        number += part.count(b"\n")
        start = end


def _none() -> FileActions:
    none = np.zeros(0, np.int64)
    return FileActions(pa.array([], pa.string()), np.zeros(0, FILE), np.zeros(0, np.bool_), none, none)
