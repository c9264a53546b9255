"""Rows whose columns belong to those of a table by position: names of columns, and of members inside structs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyspark.sql.functions as sf
import pyspark.sql.types as st

from pyspark_delta.errors import SchemaMismatchError
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.schema.types import StructType
from pyspark_delta.spark.frames.schemas import to_spark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_NESTED = (st.StructType, st.ArrayType, st.MapType)


def by_position(frame: DataFrame, names: Sequence[str], schema: StructType) -> DataFrame:
    """Return a frame with these names for its first columns, and with the member names of the table's structs.

    Spark casts structs by position too. Raises SchemaMismatchError for a struct with fewer members than in the table.
    """
    renamed = frame.toDF(*names, *frame.columns[len(names) :])
    given = renamed.schema.fields
    if not any(isinstance(one.dataType, _NESTED) for one in given):
        return renamed
    known = {one.name.casefold(): one.dataType for one in to_spark(schema)}
    return renamed.select(*(_with_member_names(one, known.get(one.name.casefold())) for one in given))


def _with_member_names(given: st.StructField, table: st.DataType | None) -> Column:
    value = sf.col(quoted(given.name))
    renamed = given.dataType if table is None else _renamed(given.dataType, table, given.name)
    return value if renamed == given.dataType else value.cast(renamed).alias(given.name)


def _renamed(given: st.DataType, table: st.DataType, path: str) -> st.DataType:
    match given, table:
        case st.StructType(), st.StructType():
            return _renamed_members(given, table, path)
        case st.ArrayType(), st.ArrayType():
            return st.ArrayType(_renamed(given.elementType, table.elementType, path), given.containsNull)
        case st.MapType(), st.MapType():
            return st.MapType(
                _renamed(given.keyType, table.keyType, path),
                _renamed(given.valueType, table.valueType, path),
                given.valueContainsNull,
            )
    return given


def _renamed_members(given: st.StructType, table: st.StructType, path: str) -> st.StructType:
    if len(given) < len(table):
        raise SchemaMismatchError(
            f"The struct '{path}' has {len(given)} members ({', '.join(given.names)}) for the {len(table)} members "
            f"{', '.join(table.names)} of the table, and they belong together by position. Nothing was written. Give a "
            "value for each member, null too; or match by name, as in INSERT INTO t BY NAME SELECT ...",
            error_class="DELTA_INSERT_COLUMN_ARITY_MISMATCH",
            column=path,
        )
    members = [
        st.StructField(theirs.name, _renamed(ours.dataType, theirs.dataType, f"{path}.{theirs.name}"), ours.nullable)
        for ours, theirs in zip(given, table, strict=False)
    ]
    return st.StructType([*members, *given.fields[len(table) :]])
