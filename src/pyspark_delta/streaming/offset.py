"""Offsets of a stream: a position between two files of a table, in the JSON text of delta-spark.

The files of a stream are ordered by version and index. In a commit, the index of a file is its position among the
`add` actions with `dataChange`; in the initial snapshot, its position among all files by modification time and path.
An offset names the last file that a batch contains. Checkpoints of Spark store the text, so that a query can be
continued by delta-spark, and the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import total_ordering
from typing import Any, TypeGuard

import orjson

from pyspark_delta.errors import DeltaError, InvalidOffsetError

BASE_INDEX = -100
"""The index before all files of a version; -1 in the text."""

SCHEMA_CHANGE_INDEX = -20
"""The index of the barrier before a schema change, with schema tracking."""

AFTER_SCHEMA_CHANGE_INDEX = -19
"""The index of the barrier after a schema change."""

_BARRIERS = (SCHEMA_CHANGE_INDEX, AFTER_SCHEMA_CHANGE_INDEX)
_FILES_ONLY, _WITH_BARRIERS = 1, 3  # format versions; 2 is reserved


@total_ordering
@dataclass(frozen=True, slots=True)
class Offset:
    """The position after file `index` of `version`.

    `initial` is True within the initial snapshot of that version. `table_id` is the id in the table's metadata.
    """

    table_id: str
    version: int
    index: int = BASE_INDEX
    initial: bool = False

    @property
    def position(self) -> tuple[int, int, int]:
        """The order of offsets: the files of an initial snapshot come before the next version."""
        return (self.version, 0 if self.initial else 1, self.index)

    def __lt__(self, other: Offset) -> bool:
        return self.position < other.position

    @property
    def next_index(self) -> int:
        """The index of the first file after the offset."""
        return 0 if self.index < 0 else self.index + 1

    @property
    def is_barrier(self) -> bool:
        """True if the offset is a barrier at a schema change."""
        return self.index in _BARRIERS

    def to_json(self) -> str:
        """Return the text of delta-spark, byte for byte."""
        return orjson.dumps(
            {
                "sourceVersion": _WITH_BARRIERS if self.is_barrier else _FILES_ONLY,
                "reservoirId": self.table_id,
                "reservoirVersion": self.version,
                "index": -1 if self.index == BASE_INDEX else self.index,
                "isStartingVersion": self.initial,
            }
        ).decode()

    @classmethod
    def parse(cls, text: str | Mapping[str, Any]) -> Offset:
        """Return the offset of a text, or of its parsed JSON. Raises InvalidOffsetError."""
        values = _object(text)
        _check_format(values, text)
        table_id, initial = values.get("reservoirId"), values.get("isStartingVersion")
        version, index = values.get("reservoirVersion"), values.get("index")
        if not (isinstance(table_id, str) and isinstance(initial, bool) and _is_number(version) and _is_number(index)):
            raise _malformed(text, "reservoirId, reservoirVersion, index or isStartingVersion is missing")
        allowed = (-1,) if values["sourceVersion"] == _FILES_ONLY else (-1, BASE_INDEX, *_BARRIERS)
        if version < 0 or (index < 0 and index not in allowed):
            raise _malformed(text, "reservoirVersion or index is out of range")
        return cls(table_id, version, BASE_INDEX if index == -1 else index, initial)


def check_table(offset: Offset, table_id: str, location: str) -> Offset:
    """Return the offset. Raises InvalidOffsetError if it belongs to another table than the one with `table_id`."""
    if offset.table_id != table_id:
        raise different_table(offset.table_id, table_id, location)
    return offset


def different_table(expected: str, found: str, location: str) -> DeltaError:
    """Return the error for a location whose table was replaced by another one since the stream began."""
    return InvalidOffsetError(
        f"The stream was reading the table with id {expected}, but the table at '{location}' has id {found}: it was "
        "deleted and created again, or the checkpoint belongs to another query. Read the stream with a new checkpoint, "
        "or restore the table.",
        error_class="DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
        sqlstate="55019",
        expected=expected,
        found=found,
        location=location,
    )


def _object(text: str | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(text, Mapping):
        return text
    try:
        values = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise _malformed(text, f"it is not JSON ({error})") from None
    if not isinstance(values, dict):
        raise _malformed(text, "it is not a JSON object")
    return values


def _check_format(values: Mapping[str, Any], text: str | Mapping[str, Any]) -> None:
    found = values.get("sourceVersion")
    if found is None or not _is_number(found):
        raise _malformed(text, "sourceVersion is missing")
    if found > _WITH_BARRIERS:
        raise InvalidOffsetError(
            f"The offset has format {found}, and this version of pyspark-delta reads formats up to {_WITH_BARRIERS}: "
            f"{text}. A newer engine has written the checkpoint; upgrade pyspark-delta.",
            error_class="DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION",
            sqlstate="XXKDS",
            found=found,
        )
    if found not in (_FILES_ONLY, _WITH_BARRIERS):
        raise InvalidOffsetError(
            f"The offset has the invalid format {found}: {text}. Restore the checkpoint, or use a new one.",
            error_class="DELTA_INVALID_SOURCE_VERSION",
            sqlstate="XXKDS",
            found=found,
        )


def _is_number(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _malformed(text: str | Mapping[str, Any], problem: str) -> InvalidOffsetError:
    return InvalidOffsetError(
        f"The offset of a Delta stream is malformed: {problem}. Found: {text}. The checkpoint is damaged, or belongs "
        "to another source; restore it, or use a new one.",
        error_class="DELTA_INVALID_SOURCE_OFFSET_FORMAT",
        sqlstate="XXKDS",
        offset=str(text),
    )
