"""Store assignment: which data may be stored in a table of another schema, and how each value is cast.

Columns and members of structs are matched by name. Engines only evaluate the casts (`cast_of`).

Types may differ if every value that fits is kept exactly: numbers that widen, or that narrow to a type in which they
fit (a value that does not is an error), and anything to string. Conversions that would round or truncate values are
refused.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from pyspark_delta.errors import SchemaMismatchError
from pyspark_delta.schema.column_paths import column_path_text
from pyspark_delta.schema.types import (
    BINARY,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    is_same_type,
)

_INTEGERS = (BYTE, SHORT, INTEGER, LONG)
ALL_INTEGERS = DecimalType(20, 0)
"""Holds every integer: engines cast integers to it before another decimal, so that each value is checked by itself."""
_TIMES = (DATE, TIMESTAMP, TIMESTAMP_NTZ)  # if only one has a zone, the session's zone applies


class Cast(Enum):
    """How a value of one type becomes a value of another in store assignment."""

    KEEP = "keep"  # the types agree
    NULL = "null"  # the data has no value
    PARTS = "parts"  # members, elements, keys and values are cast one by one
    CHECK = "check"  # a number, which may not fit: then it is an error
    CONVERT = "convert"


@dataclass(frozen=True, slots=True)
class Difference:
    """A column whose data does not match the table; a type is None if that side lacks the column."""

    path: tuple[str, ...]
    table: DataType | None
    data: DataType | None
    problem: str


def check_storable(
    data: StructType, table: StructType, *, can_overwrite: bool = False, merging: bool = False, casts: bool = False
) -> None:
    """Raise SchemaMismatchError with a table of every mismatched column, and the option that allows it.

    `can_overwrite`: the write may replace the schema; `merging`: it already adds new columns; `casts`: it casts values,
    so that only names and kinds of types must agree.
    """
    found = tuple(d for d in differences(data, table) if not (casts and _is_castable(d)))
    if found:
        raise SchemaMismatchError(_message(found, can_overwrite, merging), differences=found)


SCHEMA_EVOLUTION = (
    "schema evolution (withSchemaEvolution() of a DeltaTable, WITH SCHEMA EVOLUTION in SQL, "
    "merge_schema=True of a Table)"
)
"""How the callers of a merge ask for new columns, for messages."""


def differences(data: StructType, table: StructType, prefix: tuple[str, ...] = ()) -> Iterator[Difference]:
    """Yield the columns of `data` that cannot be stored in `table`. A column that `data` lacks is stored as null."""
    for field in data:
        path = (*prefix, field.name)
        target = table.find(field.name)
        if target is None:
            if field.type != VOID:
                yield Difference(path, None, field.type, f"not a column of the table{_near(field.name, table)}")
        else:
            yield from _type_differences(path, field.type, target.type)


def check_complete(data: DataType, field: StructField) -> None:
    """Raise SchemaMismatchError if new structs of a column lack members that the column has."""
    lacking = tuple(lacking_members(data, field.type, (field.name,)))
    if lacking:
        names = ", ".join(map(column_path_text, lacking))
        raise SchemaMismatchError(
            f"The new value of the column '{field.name}' lacks {names}. Give each of them a value, which may "
            f"be null, or set parts of the column one by one. A merge with {SCHEMA_EVOLUTION} sets them to null.",
            error_class="DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
            sqlstate="42846",
            column=field.name,
        )


def _near(name: str, table: StructType) -> str:
    """Return a question about the column of a similar name, if there is one."""
    folded = {known.casefold(): known for known in table.names}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return f"; did you mean '{folded[near[0]]}'?" if near else ""


def cast_of(data: DataType, table: DataType) -> Cast:
    """Return how values of one type are stored as another; `check_storable` says if they may be."""
    if is_same_type(data, table):
        return Cast.KEEP
    if data == VOID:
        return Cast.NULL
    match data, table:
        case (StructType(), StructType()) | (ArrayType(), ArrayType()) | (MapType(), MapType()):
            return Cast.PARTS
        case _:
            return Cast.CHECK if _is_exact(data) and _is_exact(table) else Cast.CONVERT


def lacking_members(data: DataType, table: DataType, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the members of the table's structs that the structs of the data lack, as paths that begin with `path`."""
    match data, table:
        case StructType(), StructType():
            for field in table:
                source = data.find(field.name)
                inner = (*path, field.name)
                yield from (inner,) if source is None else lacking_members(source.type, field.type, inner)
        case ArrayType(source), ArrayType(target):
            yield from lacking_members(source, target, (*path, "element"))
        case MapType(), MapType():
            yield from lacking_members(data.key_type, table.key_type, (*path, "key"))
            yield from lacking_members(data.value_type, table.value_type, (*path, "value"))


def matched_members(data: StructType, table: StructType) -> Iterator[tuple[StructField, int | None]]:
    """Yield the fields of a table or struct, and the position of the data's field of that name; None without one."""
    positions = {field.name.casefold(): position for position, field in reversed(list(enumerate(data)))}
    for field in table:
        yield field, positions.get(field.name.casefold())


def _type_differences(path: tuple[str, ...], data: DataType, table: DataType) -> Iterator[Difference]:
    match data, table:
        case StructType(), StructType():
            yield from differences(data, table, path)
        case ArrayType(source), ArrayType(target):
            yield from _type_differences((*path, "element"), source, target)
        case MapType(source_key, source_value), MapType(target_key, target_value):
            yield from _type_differences((*path, "key"), source_key, target_key)
            yield from _type_differences((*path, "value"), source_value, target_value)
        case _ if problem := _problem(data, table):
            yield Difference(path, table, data, problem)


def _problem(data: DataType, table: DataType) -> str:
    """Return why values of one type cannot be stored as another without a change; empty if they can."""
    if data in (table, VOID):
        return ""
    if _is_nested(data) or _is_nested(table) or VARIANT in (data, table):
        return "a different kind of type"
    if table == STRING:
        return "" if data != BINARY else "a different kind of type"
    if (data, table) == (FLOAT, DOUBLE) or (data in _TIMES and table in _TIMES[1:]):
        return ""
    if isinstance(data, DecimalType) and isinstance(table, DecimalType):
        return "" if table.scale >= data.scale else "digits after the decimal point would be lost"
    if data in _INTEGERS and (table in _INTEGERS or isinstance(table, DecimalType)):
        return ""
    if isinstance(data, DecimalType) and data.scale == 0 and table in _INTEGERS:
        return ""
    if data in _INTEGERS and table == DOUBLE and data != LONG:
        return ""
    if _is_number(data) and _is_number(table):
        return "values could be rounded"
    return "a different kind of type"


def _is_castable(difference: Difference) -> bool:
    """True if Spark may have a cast: both sides exist, and neither is a nested type."""
    sides = (difference.data, difference.table)
    return not any(side is None or _is_nested(side) for side in sides)


def _is_exact(data_type: DataType) -> bool:
    return data_type in _INTEGERS or isinstance(data_type, DecimalType)


def _is_number(data_type: DataType) -> bool:
    return _is_exact(data_type) or data_type in (FLOAT, DOUBLE)


def _is_nested(data_type: DataType) -> bool:
    return isinstance(data_type, StructType | ArrayType | MapType)


def _message(found: tuple[Difference, ...], can_overwrite: bool, merging: bool) -> str:
    rows = [("column", "table", "data", "problem")]
    rows += [(".".join(d.path), _type(d.table), _type(d.data), d.problem) for d in found]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = [
        "  " + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    advice = []
    if any(d.table is None for d in found) and not merging:
        advice.append(
            "To add the new columns to the table, set the option mergeSchema (merge_schema of a Table) to true; else "
            "leave them out of the data."
        )
    if any(d.table is not None for d in found):
        advice.append("Cast the columns to the types of the table.")
    if can_overwrite:
        advice.append("To give the table the schema of the data, set the option overwriteSchema to true.")
    return "The schema of the data does not match the table:\n" + "\n".join(lines) + "\n" + " ".join(advice)


def _type(data_type: DataType | None) -> str:
    text = "-" if data_type is None else str(data_type)
    return text if len(text) <= 60 else f"{text[:57]}..."
