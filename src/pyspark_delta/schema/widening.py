"""Type widening: the changes that leave old data files valid (Type Widening; beyond the 2024-12 text, A1).

A file written before a change holds the narrower type and is converted when it is read. The history of a column is in
its metadata under `delta.typeChanges`; readers refuse a table whose history holds a change they cannot convert. More
changes are read than made: every one that keeps all values, since other writers make more than the protocol lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark_delta.errors import CorruptLogError, UnsupportedTableError
from pyspark_delta.schema.json import parse_type
from pyspark_delta.schema.types import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)

TYPE_CHANGES = "delta.typeChanges"

_ALLOWED: dict[DataType, frozenset[DataType]] = {
    BYTE: frozenset([SHORT, INTEGER, LONG, DOUBLE]),
    SHORT: frozenset([INTEGER, LONG, DOUBLE]),
    INTEGER: frozenset([LONG, DOUBLE]),
    FLOAT: frozenset([DOUBLE]),
    DATE: frozenset([TIMESTAMP_NTZ]),
}
# An integer type may become a decimal with at least this many digits before the decimal point.
_INTEGER_DIGITS: dict[DataType, int] = {BYTE: 10, SHORT: 10, INTEGER: 10, LONG: 20}
# The digits that the type's values have, and the float type that holds them all: enough to read changes by others.
_LOSSLESS_DIGITS: dict[DataType, int] = {BYTE: 3, SHORT: 5, INTEGER: 10, LONG: 19}
_LOSSLESS_FLOATS: dict[DataType, DataType] = {BYTE: FLOAT, SHORT: FLOAT}


def is_widening(narrow: DataType, wide: DataType) -> bool:
    """True if this package may change `narrow` to the different type `wide` without rewriting files."""
    if narrow == VOID:
        return wide != VOID
    if narrow.annotation is not None or wide.annotation is not None:
        return False
    if isinstance(wide, DecimalType):
        if isinstance(narrow, DecimalType):
            more_scale = wide.scale - narrow.scale
            return narrow != wide and more_scale >= 0 and wide.precision - narrow.precision >= more_scale
        digits = _INTEGER_DIGITS.get(narrow)
        return digits is not None and wide.precision - wide.scale >= digits
    return wide in _ALLOWED.get(narrow, ())


def is_lossless(narrow: DataType, wide: DataType) -> bool:
    """True if files with `narrow` can be read as the different type `wide`: it holds every value exactly."""
    if is_widening(narrow, wide):
        return True
    if narrow.annotation is not None or wide.annotation is not None:
        return False
    if isinstance(wide, DecimalType):
        digits = _LOSSLESS_DIGITS.get(narrow)
        return digits is not None and wide.precision - wide.scale >= digits
    return _LOSSLESS_FLOATS.get(narrow) == wide


def has_unlisted_changes(schema: StructType) -> bool:
    """True if the history of a column holds a lossless change that the protocol does not list.

    Spark's Parquet reader converts only those that it lists; the Arrow reader converts all.
    """
    return any(
        before != after and not is_widening(before, after)
        for path, field in _fields(schema)
        for _, before, after in _changes(path, field)
    )


def has_changes(schema: StructType) -> bool:
    """True if the history of a column holds a change, so that older files may have another type."""
    return any(True for path, field in _fields(schema) for _ in _changes(path, field))


def check_type_changes(schema: StructType) -> None:
    """Check the recorded history of every field.

    Raises UnsupportedTableError, naming the column, for a change that is not convertible, and CorruptLogError for a
    history that is malformed.
    """
    for path, field in _fields(schema):
        for where, before, after in _changes(path, field):
            if before != after and not is_lossless(before, after):
                raise UnsupportedTableError(
                    f"Column '{where}' was changed from {before} to {after}; files from before the change cannot be "
                    f"read as {after}. Rewrite the table with a client that supports the change.",
                    error_class="DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA",
                    column=where,
                )


def _changes(column: str, field: StructField) -> Iterator[tuple[str, DataType, DataType]]:
    """Yield the recorded changes of a field, each with the path of the changed type.

    Raises CorruptLogError for a malformed history.
    """
    changes = field.metadata.get(TYPE_CHANGES)
    if changes is None:
        return
    if not isinstance(changes, list):
        raise CorruptLogError(f"{TYPE_CHANGES} of column '{column}' is not a list: {changes!r}.", column=column)
    for change in changes:
        if not isinstance(change, Mapping) or "fromType" not in change or "toType" not in change:
            raise CorruptLogError(
                f"{TYPE_CHANGES} of column '{column}' contains {change!r}, which is not a type change.", column=column
            )
        where = f"{column}.{change['fieldPath']}" if change.get("fieldPath") else column
        yield where, parse_type(change["fromType"], where=where), parse_type(change["toType"], where=where)


def _fields(schema: StructType) -> Iterator[tuple[str, StructField]]:
    """Yield every field with its path, outer ones first."""
    stack: list[tuple[str, DataType]] = [("", schema)]
    while stack:
        path, found = stack.pop()
        match found:
            case StructType(fields):
                named = [(f"{path}.{field.name}" if path else field.name, field) for field in fields]
                yield from named
                stack += [(where, field.type) for where, field in reversed(named)]
            case ArrayType(element, _):
                stack.append((f"{path}.element", element))
            case MapType(key, value, _):
                stack += [(f"{path}.value", value), (f"{path}.key", key)]
