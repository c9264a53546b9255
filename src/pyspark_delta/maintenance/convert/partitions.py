"""Partition columns of a directory of files: from the names of its directories, with types by Spark's rules.

A column is an integer, a date or a timestamp if all of its values are, and otherwise a string. Decimal fractions stay
strings, because a version such as `1.10` would lose its zero. Null has a directory name of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from urllib.parse import unquote_to_bytes

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import PARTITION_VALUES
from pyspark_delta.errors import CorruptLogError, InvalidOperationError
from pyspark_delta.schema.partition_values import HIVE_NULL, parse_partition_column, serialize_partition_column
from pyspark_delta.schema.types import DATE, INTEGER, LONG, STRING, TIMESTAMP, DataType, StructField, StructType

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}")
_TIMESTAMP = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,6})?")


@dataclass(frozen=True, slots=True)
class Partitions:
    """The partition columns, in the order of the directories, and the value of each file: a column of maps."""

    columns: StructType
    values: pa.Array


def partitions_of(paths: pa.Array, declared: StructType | None, location: str, time_zone: str = "UTC") -> Partitions:
    """Return the partition columns of files with paths below `location`, decoded.

    `declared` are the columns that the caller names, with their types; by default both come from the paths. `time_zone`
    is the zone of timestamps without one. Raises InvalidOperationError, naming the file, for a path that does not fit.
    """
    directories = pc.replace_substring_regex(paths, "(^|/)[^/]*$", "").dictionary_encode()
    parsed = [_parse(directory) for directory in directories.dictionary.to_pylist()]
    if not declared and not any(name for found in parsed for name, _ in found):
        parsed = [[] for _ in parsed]  # directories that only group files
    names = [name for name, _ in parsed[0]] if declared is None else list(declared.names)
    for directory, found in zip(directories.dictionary.to_pylist(), parsed, strict=True):
        _check(names, [name for name, _ in found], directory, location)
    texts = [pa.array([found[at][1] for found in parsed], pa.string()) for at in range(len(names))]
    if declared is None:
        columns = StructType(tuple(StructField(n, _inferred(text)) for n, text in zip(names, texts, strict=True)))
    else:
        columns = StructType(tuple(StructField(field.name, field.type) for field in declared))
    stored = [
        _stored(text, field, directories.dictionary, location, time_zone).take(directories.indices)
        for field, text in zip(columns, texts, strict=True)
    ]
    return Partitions(columns, _maps(columns, stored, len(paths)))


def _parse(directory: str) -> list[tuple[str, str | None]]:
    """Return names and values of the directories of a path; `None` is null."""
    found = []
    for segment in filter(None, directory.split("/")):
        name, separator, value = segment.partition("=")
        if separator and name:
            text = _unescape(value)
            found.append((_unescape(name), None if text in (HIVE_NULL, "") else text))
        else:
            found.append(("", segment))
    return found


def _unescape(text: str) -> str:
    """Decode the escapes of a directory name. Hive escapes single ASCII characters, others the bytes of UTF-8."""
    return unquote_to_bytes(text).decode("utf-8", "surrogateescape") if "%" in text else text


def _check(expected: list[str], found: list[str], directory: str, location: str) -> None:
    if len(found) != len(expected) or "" in found:
        named = ", ".join(f"'{name}'" if name else "a directory without one" for name in found) or "none"
        wanted = ", ".join(f"'{name}'" if name else "a directory without one" for name in expected) or "none"
        raise InvalidOperationError(
            f"The directory '{directory}' of '{location}' has the partition columns {named}, expected {wanted}. Every "
            "file must be in directories column=value of all partition columns, in one order, and in no others.",
            error_class="DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME",
            path=directory,
        )
    for name, other in zip(expected, found, strict=True):
        if name.casefold() != other.casefold():
            raise InvalidOperationError(
                f"The directory '{directory}' of '{location}' has the partition column '{other}' where '{name}' is "
                "expected. Declare the partition columns in the order of the directories.",
                error_class="DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME",
                path=directory,
                column=other,
            )


# ------------------------------------------------------------------------------------------------------ types
def _inferred(texts: pa.Array) -> DataType:
    """Return the narrowest type that all values have."""
    kinds = {_kind(text) for text in texts.drop_null().unique().to_pylist()}
    if not kinds or STRING in kinds:
        return STRING
    if kinds <= {INTEGER, LONG}:
        return LONG if LONG in kinds else INTEGER
    if kinds <= {DATE, TIMESTAMP}:
        return TIMESTAMP if TIMESTAMP in kinds else DATE
    return STRING


def _kind(text: str) -> DataType:
    if _INTEGER.fullmatch(text):
        number = int(text)
        return INTEGER if -(1 << 31) <= number < 1 << 31 else LONG if -(1 << 63) <= number < 1 << 63 else STRING
    if _DATE.fullmatch(text):
        year, month, day = map(int, text.split("-"))
        return DATE if _exists(lambda: date(year, month, day)) else STRING
    moment = _TIMESTAMP.fullmatch(text)
    if moment is not None and _exists(lambda: datetime.fromisoformat(moment[1])):
        return TIMESTAMP
    return STRING


def _exists(make: Callable[[], object]) -> bool:
    try:
        make()
    except ValueError:
        return False
    return True


# ----------------------------------------------------------------------------------------------------- values
def _stored(texts: pa.Array, field: StructField, directories: pa.Array, location: str, time_zone: str) -> pa.Array:
    """Return the values as the log holds them. Raises InvalidOperationError for one that is not of the type."""
    if field.type == STRING:
        return texts
    try:
        return serialize_partition_column(
            parse_partition_column(texts, field.type, time_zone, column=field.name), field.type
        )
    except CorruptLogError as error:
        value = error.facts.get("value")
        if value is None:
            raise
        directory = directories[pc.index(texts, value).as_py()].as_py()
        raise InvalidOperationError(
            f"The value '{value}' of the partition column '{field.name}' in the directory '{directory}' of "
            f"'{location}' is not of type {field.type}. Declare the column with another type, such as string.",
            error_class="DELTA_FAILED_CAST_PARTITION_VALUE",
            path=directory,
            column=field.name,
            value=value,
        ) from None


def _maps(columns: StructType, values: list[pa.Array], files: int) -> pa.Array:
    """Return the values of each file as a map from column to text."""
    width = len(columns)
    offsets = pa.array(np.arange(files + 1, dtype=np.int32) * width)
    order = (np.arange(files)[:, None] + np.arange(width)[None, :] * files).ravel()
    items = pa.concat_arrays([pa.array([], pa.string()), *values]).take(pa.array(order, pa.int64()))
    keys = pa.array(columns.names, pa.string()).take(pa.array(np.tile(np.arange(width), files), pa.int64()))
    return pa.MapArray.from_arrays(offsets, keys, items).cast(PARTITION_VALUES.type)
