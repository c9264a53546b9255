"""New values for columns in UPDATE and MERGE: resolved by name, and cast to the types of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyspark.sql.functions as sf

from pyspark_delta.expressions.name_resolution import find_fields
from pyspark_delta.schema.types import DataType, StructField, StructType
from pyspark_delta.spark.engine.dml.store_assignment import StoreAssignment, assign_value
from pyspark_delta.spark.engine.write.alignment import frame_schema
from pyspark_delta.spark.frames.column_text import name_parts, sql_of
from pyspark_delta.spark.frames.plain_columns import aliased
from pyspark_delta.statements.assignments import is_default_word

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_VALUE = "__pyspark_delta_value_{}"


@dataclass(frozen=True, slots=True)
class Assigned:
    """The new value of a top-level column, cast to the type of the column.

    `unfit` is the text of a value that cannot be cast, null for other values; None if every value can be cast.
    """

    field: StructField
    value: Column
    unfit: Column | None = None


def is_default(value: Column | str) -> bool:
    """Return True if a new value is SQL's word DEFAULT."""
    text = value if isinstance(value, str) else sql_of(value)
    parts = name_parts(value) if text is None else (text,)
    return parts is not None and is_default_word(parts)


def assign(
    probe: DataFrame,
    schema: StructType,
    resolved: Mapping[tuple[str, ...], Column | str],
    old: Callable[[str], Column],
    *,
    fills: bool = False,
    keeps: bool = False,
) -> dict[str, Assigned]:
    """Return the new values by top-level column, cast to the types of the table.

    `resolved` are the given values by the path of their column. Spark analyzes them on `probe`, an empty frame. `old`
    returns the value of a column before the statement. A value for a member of a struct leaves the other members as
    they were; a struct that was null becomes a struct.

    With `fills`, new structs may lack members, which are null or, with `keeps`, keep their old values. `keeps` requires
    that all paths are those of top-level columns.

    Raises SchemaMismatchError for a value that cannot be stored in its column, and Spark's own errors about a value.
    """
    values = [sf.expr(value) if isinstance(value, str) else value for value in resolved.values()]
    names = [_VALUE.format(number) for number in range(len(values))]
    types = frame_schema(probe.select(*(aliased(value, name) for value, name in zip(values, names, strict=True))))
    parts: dict[str, dict[tuple[str, ...], StoreAssignment]] = {}  # by top-level column, and by path inside it
    for path, value, name in zip(resolved, values, names, strict=True):
        found = types.find(name)
        fields = find_fields(path, schema)
        assert found is not None
        assert fields is not None
        before = old(fields[0].name) if keeps else None
        one = assign_value(value, found.type, fields[-1], before, fills=fills)
        parts.setdefault(path[0], {})[path[1:]] = one
    assigned = {}
    for top, of_top in parts.items():
        field = schema.find(top)
        assert field is not None
        unfit = [one.unfit for one in of_top.values() if one.unfit is not None]
        assigned[field.name] = Assigned(
            field, _rebuilt(field.type, of_top, old(field.name)), sf.coalesce(*unfit) if unfit else None
        )
    return assigned


def _rebuilt(data_type: DataType, parts: Mapping[tuple[str, ...], StoreAssignment], old: Column) -> Column:
    """Return the value `old` with the given parts replaced; `parts` are new values by path."""
    if () in parts:
        return parts[()].value
    assert isinstance(data_type, StructType)
    members = []
    for field in data_type:
        inner = {path[1:]: one for path, one in parts.items() if path[0] == field.name}
        before = old.getField(field.name)
        members.append((_rebuilt(field.type, inner, before) if inner else before).alias(field.name))
    return sf.struct(*members)
